"""The form of a kind of sink: an endpoint whose events are stored instead of posted. Plain module.

When an event is attempted, retried or dead-lettered is no matter of a sink: it only stores what it
is given, so that storing the same events again changes nothing.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from registrations.endpoints.addresses import CallbackAddresses, Resolve


class SinkEvent(NamedTuple):
    """An event to store: the id of its delivery, and the JSON that a batch of callbacks has.
    `is_repeat`: it was requested again after its end, or a replay wrote it.
    """

    id: str
    document: bytes
    is_repeat: bool = False


class SinkAnswer(NamedTuple):
    """What is recorded of an attempt that stored its events."""

    request: str
    response: str
    status: int | None = None


class SinkFault(Exception):
    """Why events were not stored: the outcome of the attempt, and a text that names no secret.
    `of_events`: some of the events may be stored without the others.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        of_events: bool = False,
    ) -> None:
        self.code = code
        self.detail = detail
        self.status = status
        self.retry_after_s = retry_after_s
        self.of_events = of_events
        super().__init__(detail)


class SinkRequest(NamedTuple):
    """A request to a server of a client, with so much of its answer."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    answer_bytes_max: int


class SinkResponse(NamedTuple):
    """Its answer, with names of headers in lower case; `is_complete`: with the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_complete: bool


# sends a request to an address that the zone may reach; raises OSError and the like
SinkHttp = Callable[[SinkRequest], Awaitable[SinkResponse]]


class SinkSpec(NamedTuple):
    """What a sink stores into. `http`: sends its requests, if it has any; `resolve`: finds the
    addresses of its host; `settings`: of the kind's type; `authentication`: decrypted; `addresses`:
    those that the zone may reach; `timeout_s`: of one attempt.
    """

    http: SinkHttp
    resolve: Resolve
    url: str
    settings: Any
    authentication: Mapping[str, str]
    addresses: CallbackAddresses
    timeout_s: float


class OpenSink(Protocol):
    """What a kind stores into, while it is open. One call at a time."""

    async def check(self) -> str:
        """Return what was found, if everything is there that `store` needs. Raises SinkFault."""
        ...

    async def store(self, events: Sequence[SinkEvent]) -> SinkAnswer:
        """Store events, all or none. Those that were stored before are not stored again. A log,
        which cannot know them, has them again, and after a fault may have some. Raises SinkFault.
        """
        ...

    def close(self) -> None:
        """Close at once, also in the middle of a call."""
        ...


class SinkKind(NamedTuple):
    """A kind of sink. `schemes`: of its URLs; `check_url` raises EventHubError at the field `url`;
    `authentication`: the types that it knows; `credentials`: kinds of credentials besides;
    `is_batched`: it needs a batch; `defaults`: of fields that are not given; `fixed`:
    fields that have one of these values, the first by default; `open` raises SinkFault.
    """

    name: str
    summary: str
    schemes: tuple[str, ...]
    settings: type[Struct]
    check_url: Callable[[str, CallbackAddresses], None]
    authentication: tuple[str, ...]
    credentials: tuple[str, ...]
    is_batched: bool
    defaults: Mapping[str, Any]
    fixed: Mapping[str, tuple[Any, ...]]
    open: Callable[[SinkSpec], Awaitable[OpenSink]]
    needs_authentication: bool = True
