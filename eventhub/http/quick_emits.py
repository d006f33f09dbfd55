"""Emit requests that repeat the head of an earlier one on their connection, answered without ASGI.
Plain module.

A producer sends the same head again and again, but for the length of its body. What a head says is
therefore read once for a connection; the bytes of the next ones are compared with it. All else is
the route's own work, credentials and limits included.
"""

from typing import Any, NamedTuple

from eventhub.base import caller, limits, metrics
from eventhub.base.errors import EventHubError
from eventhub.http.app import Router
from eventhub.http.call import Call, Subject
from eventhub.http.emit_route import EmitHead, emit_route, emit_whole
from eventhub.http.messages import Headers, Incoming, Peer, Response, Scope, response_headers
from eventhub.http.request_ids import HEADER
from eventhub.http.tracing import Tracer

_LENGTH = b"\r\ncontent-length:"
_LENGTH_DIGITS_MAX = 9
# Headers that are the same in each request and change nothing outside of the route. One with
# another header takes the usual way.
_USUAL = frozenset(
    (
        *(b"host", b"authorization", b"content-type", b"content-length", b"user-agent"),
        *(b"accept", b"accept-encoding", b"accept-language", b"connection"),
    )
)


class KnownHead(NamedTuple):
    """The head of an emit request, but for the length of its body, and what it says."""

    before: bytes  # up to the length
    after: bytes
    scope: Scope
    head: EmitHead

    def body_of(self, data: bytes) -> bytes | None:
        """Return the body of a request with this head; None if the data are not just one such
        request, complete.
        """
        at = len(self.before)
        if not data.startswith(self.before):
            return None
        end = data.find(b"\r", at, at + _LENGTH_DIGITS_MAX + 1)
        if end < 0 or not data.startswith(self.after, end):
            return None
        digits, body = data[at:end], data[end + len(self.after) :]
        whole = digits.isdigit() and int(digits) == len(body) <= limits.BODY_BYTES_MAX
        return body if whole else None


class QuickEmits:
    """The emit route of a process, for requests with a known head."""

    def __init__(self, router: Router, tracer: Tracer) -> None:
        self._router = router
        self._route = router.route_of(emit_route)
        self._role = self._route.role
        self._path = self._route.pattern()
        self._tracer = tracer

    @property
    def is_on(self) -> bool:
        """Whether requests may be answered here; not while calls are traced."""
        return not self._tracer.is_on

    def known(self, scope: Any, data: bytes) -> KnownHead | None:
        """Return the head with which the data begin, parsed as `scope`; None if requests with it
        take the usual way.
        """
        if scope["method"] != "POST" or scope["query_string"] or scope["http_version"] != "1.1":
            return None
        path = self._path.fullmatch(scope["path"])
        headers: Headers = scope["headers"]
        if path is None or not _is_usual(headers):
            return None
        size = data.find(b"\r\n\r\n") + 4
        at = data[:size].lower().find(_LENGTH) + len(_LENGTH)
        at += data[at] == ord(" ")
        end = data.find(b"\r", at)
        if (b"content-length", data[at:end]) not in headers:
            return None
        try:
            head = EmitHead.read(path[1], headers)
        except EventHubError:
            return None
        return KnownHead(data[:at], data[end:size], scope, head)

    async def answer(self, known: KnownHead, body: bytes, peer: Peer) -> tuple[Response, Headers]:
        """Return the answer to a request, and all its headers."""
        metrics.QUICK_EMITS.inc()
        scope = known.scope
        client = scope.get("client")  # none on a Unix socket
        request_id = caller.request_id_of("")
        caller.arrive(address=str(client[0]) if client else "", request_id=request_id)
        incoming = Incoming(_nothing_more, peer)
        request = (scope, incoming, (known.head.stream,), Subject())
        call = Call(*self._router.services, *request, self._role, frozenset())
        work = emit_whole(call, known.head, body)
        response = await self._router.answered(self._route, call, work)
        if not isinstance(response, Response):
            raise TypeError("the route does not stream")
        headers = [*response_headers(response), (HEADER, request_id.encode())]
        return response, headers


async def _nothing_more() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


def _is_usual(headers: Headers) -> bool:
    """Return whether the headers are the usual ones, each given once."""
    names = {name for name, _ in headers}
    if not (len(names) == len(headers) and names <= _USUAL and b"content-length" in names):
        return False
    return dict(headers).get(b"connection", b"keep-alive").lower() == b"keep-alive"
