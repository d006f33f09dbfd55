"""The caller of the present request: who acts, from which address, under which request id. A
context variable holds it: it is set where a request arrives and where it is authenticated, and read
where a change becomes an event and where a line is logged. Plain module.

Work outside of requests acts for the hub itself. A thread that serves a request runs in a copy of
its context (`contextvars.copy_context`).
"""

import ipaddress
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from eventhub.base import limits

_REQUEST_ID = re.compile(rf"[A-Za-z0-9._:/+=@-]{{1,{limits.REQUEST_ID_CHARS_MAX}}}")


class Caller(NamedTuple):
    """Who acts. `kind`: `hub` (the hub itself, a worker or a job), `command` (manage.py), `key` or
    `operator`; of the names, those of its kind are set. `address`: of the connection, or what a
    trusted proxy reports; it may be malformed.
    """

    kind: str = "hub"
    operator: str = ""
    key: str = ""  # the public id
    client: str = ""
    session: str = ""  # of the client, that the request acts through
    command: str = ""
    address: str = ""
    request_id: str = ""

    def json(self) -> dict[str, str]:
        """Return the caller as events name it, without empty fields. It contains no secret."""
        found = self._replace(address=normal_address(self.address))._asdict()
        return {name: value for name, value in found.items() if value}


HUB = Caller()
_CURRENT: ContextVar[Caller] = ContextVar("caller", default=HUB)


def current() -> Caller:
    """Return the caller of the present request; outside of requests the hub itself."""
    return _CURRENT.get()


def arrive(*, address: str, request_id: str) -> None:
    """Begin a request of a caller that is not known yet."""
    _CURRENT.set(Caller(address=address, request_id=request_id))


def identify(kind: str, **names: str) -> None:
    """Name the caller of the present request, once it is authenticated."""
    request = _CURRENT.get()
    _CURRENT.set(Caller(kind, **names, address=request.address, request_id=request.request_id))


@contextmanager
def acting(caller: Caller) -> Iterator[None]:
    """Act as the caller within the block."""
    token = _CURRENT.set(caller)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def request_id_of(text: str) -> str:
    """Return the request id that a caller sent, if it is valid, else a new one: unique, no
    secret.
    """
    return text if text and _REQUEST_ID.fullmatch(text) else f"{random.getrandbits(128):032x}"


def normal_address(text: str) -> str:
    """Return an IP address in its normal form, an IPv4 address also where it is mapped into IPv6;
    empty if the text is none.
    """
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return ""
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)
