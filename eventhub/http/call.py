"""One request of a hot route, and the position that its reply carries (EMC-09). Plain module.

Every reply to an authenticated caller has the last event of the stream that it is about. A handler
that read it sets it in its response. For all other replies, refusals above all, it is read when
the reply is known: of the route's stream if the caller has the grant that the route needs, else of
`system`.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from eventhub.access import roles
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.access.sessions import HEADER, session_name
from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.base.fair_queue import Admission
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import Cursor, StreamInfo
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.http.health import Health
from eventhub.http.messages import Headers, Incoming, Response, Scope, StreamingResponse, bearer_of
from eventhub.http.query import parse_query
from eventhub.types.registry import TypeRegistry

_WITHOUT_POSITION = (401, 503)  # the caller is unknown, or the log cannot be read
_SESSION = HEADER.lower().encode()
_OF_A_LIMIT = (429, 507)  # refused for as long as the caller repeats it: from memory


class RouteServices(NamedTuple):
    """What the routes of a process share."""

    log: Log
    authorizer: Authorizer
    types: TypeRegistry
    health: Health
    emits: Admission  # emit requests that are parsed and appended at a time


class Subject:
    """The caller and the stream of a request, each from the moment when it is known."""

    __slots__ = ("caller", "stream")

    def __init__(self) -> None:
        self.caller: Principal | None = None
        self.stream: StreamInfo | None = None


class Call(NamedTuple):
    """One request of a route."""

    log: Log
    authorizer: Authorizer
    types: TypeRegistry
    health: Health
    emits: Admission
    scope: Scope
    incoming: Incoming
    parameters: tuple[str, ...]  # of the path, in order
    subject: Subject
    role: str  # that an operator needs
    query_names: frozenset[str]  # the query parameters of the route

    async def authenticate(self, credential: str) -> Principal:
        """Return the caller, as it acts through the session that the request names. Raises what
        Authorizer.authenticate and Authorizer.through raise, BadRequest for the header and for
        the query parameters, and Forbidden for an operator without the role that the route needs.
        """
        self.subject.caller = found = await self.authorizer.authenticate(credential)
        found.identify()
        for name, value in self.scope["headers"]:
            if name == _SESSION:
                found = await self.authorizer.through(found, session_name(value.decode("latin-1")))
                found.identify()
                break
        self.query()
        if found.is_operator:
            roles.require(found.role, self.role)
        return found

    def query(self) -> dict[str, str]:
        """Parse the query parameters by name. Raises subclasses of BadRequest."""
        return parse_query(self.scope["query_string"], self.query_names)

    async def find_stream(self, principal: Principal, name: str) -> StreamInfo:
        """Return the stream of the route. Check the caller's grant before: a refusal shows the last
        sequence of the stream from here on. Raises UnknownStream.
        """
        self.subject.stream = found = await self.authorizer.stream(principal, name)
        return found


Handler = Callable[[Call], Awaitable[Response | StreamingResponse]]


async def reply_position(
    services: RouteServices, headers: Headers, status: int, subject: Subject
) -> Cursor | None:
    """Return the position for a reply that has none; None if its caller is not known, or the log
    cannot be read.
    """
    if status in _WITHOUT_POSITION:
        return None
    try:
        if subject.caller is None:  # refused before the route authenticated it
            subject.caller = await services.authorizer.authenticate(bearer_of(headers))
        age_s_max = limits.REFUSAL_HEAD_S_MAX if status in _OF_A_LIMIT else 0.0
        return await services.log.head(subject.stream or SYSTEM_STREAM_ID, age_s_max=age_s_max)
    except EventHubError:
        return None
