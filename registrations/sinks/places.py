"""The URLs of databases and clusters that are sinks: without user and password, and at addresses
that the zone may reach. Plain module.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from eventhub.base.errors import InvalidField
from registrations.endpoints.addresses import CallbackAddresses, ends_in_number, fixed_address
from registrations.errors import RefusedAddress


class SinkPlace(Protocol):
    """What the parts of a URL have in common."""

    @property
    def user(self) -> str: ...

    @property
    def password(self) -> str: ...

    @property
    def places(self) -> Iterable[tuple[str, int]]:
        """The hosts and ports."""
        ...


T = TypeVar("T", bound=SinkPlace)


def parse_place(url: str, parse: Callable[[str, str], T], form: str) -> T:
    """Return the parts of a URL, which has no user and password. `parse`: takes the URL and the
    form that a refusal names. Raises ValueError with a message that has nothing of the URL.
    """
    target = parse(url, form)
    if target.user or target.password:
        raise ValueError(
            "User and password do not belong into the URL but into `authentication`, which is"
            f" stored encrypted. {form}"
        )
    return target


def check_place(url: str, addresses: CallbackAddresses, parse: Callable[[str], SinkPlace]) -> None:
    """Check a URL without user and password. Raises InvalidField, RefusedAddress."""
    try:
        target = parse(url)
    except ValueError as error:
        raise InvalidField(str(error), field="url") from None
    for host, port in target.places:
        address = fixed_address(host)
        if address is None and ends_in_number(host):
            raise InvalidField("Write the address as four decimal numbers.", field="url")
        if address is not None and not addresses.allowed(address, host, port):
            raise RefusedAddress(field="url")
