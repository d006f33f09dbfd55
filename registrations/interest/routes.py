"""The routes of interest: a stream's closure, and whether any client is interested in events of a
shape. Plain module.

They are for producers, and answer with the union of all interests, without names of clients.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import orjson
from msgspec import Meta

from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base import errors, limits
from eventhub.base.event_loop import run_in_slices
from eventhub.event.inbound import refuse_json
from eventhub.event.json_types import Int64
from eventhub.eventlog.stored import StreamInfo
from eventhub.http.call import Call
from eventhub.http.messages import (
    Headers,
    Response,
    content_length,
    read_body,
    read_head,
    utf8_path,
)
from registrations.filters.closure.shapes import (
    InterestAnswer,
    InterestCheck,
    Shape,
    ShapeJson,
    parse_shape,
)
from registrations.interest.live import Closures, StreamInterest
from registrations.interest.stored import Audience, InterestScope


class SupertypesJson(TypedDict):
    """A declared type, and its declared supertypes, the nearest first."""

    domain: str
    type: str
    supertypes: tuple[str, ...]


class StreamInterestJson(TypedDict):
    """The interest in a stream, as producers receive it."""

    filter: Annotated[str, Meta(description="`false` if there is no interest.")]
    alternatives: Annotated[
        tuple[str, ...], Meta(description="The filter as alternatives, one of which must match.")
    ]
    widened: Annotated[
        bool, Meta(description="The filter matches more than the interest, to limit its size.")
    ]
    supertypes: list[SupertypesJson]
    quench: Annotated[
        bool,
        Meta(
            description="It includes listeners, and a producer may suppress events that do not"
            " match."
        ),
    ]
    tag: Annotated[str, Meta(description="Equal while the closure is the same.")]
    sequence: Annotated[
        Int64, Meta(description="It includes the changes in `system` up to this sequence.")
    ]


class ClosureJson(StreamInterestJson):
    """The closure of a stream."""

    stream: str
    language: Literal["predicate"]


class InterestJson(TypedDict):
    """The answer for a shape: whether any client is interested in its events."""

    stream: str
    interested: InterestAnswer
    quench: bool
    tag: str
    sequence: Int64


class InterestRequest(TypedDict):
    """A shape, and the audience whose interest counts."""

    shape: ShapeJson
    audience: NotRequired[list[str]]


class InterestRoutes:
    """The routes of one process."""

    def __init__(self, authorizer: Authorizer, closures: Closures) -> None:
        self._authorizer = authorizer
        self._closures = closures

    async def closure(self, call: Call) -> Response:
        """Answer GET /v1/streams/{stream}/closure. Raises Unauthenticated and its subclasses,
        Forbidden, UnknownStream, InvalidField, UnknownField, DatabaseUnavailable.
        """
        stream = await self._stream(call)
        scope = InterestScope(stream.id, _queried_audience(call.query()))
        interest = await self._closures.current(scope)
        headers: Headers = [(b"etag", f'"{interest.tag}"'.encode())]
        if _has_tag(call.scope["headers"], interest.tag):
            return Response(304, b"", headers, position=interest.through)
        found: ClosureJson = {
            "stream": stream.name,
            "language": "predicate",
            **interest_json(interest),
        }
        return Response(200, orjson.dumps(found), headers, position=interest.through)

    async def interest(self, call: Call) -> Response:
        """Answer POST /v1/streams/{stream}/interest. Raises the same, and errors of the body."""
        stream = await self._stream(call)
        length = content_length(call.scope["headers"])
        body = await read_body(call.incoming, length, bytes_max=limits.MESSAGE_BYTES_MAX)
        fields = _fields(body)
        shape = parse_shape(fields.get("shape"))
        scope = InterestScope(stream.id, audience_of(fields.get("audience")))
        interest = await self._closures.current(scope)
        found: InterestJson = {
            "stream": stream.name,
            "interested": await interested_in(interest, shape),
            "quench": interest.quench,
            "tag": interest.tag,
            "sequence": interest.through.sequence,
        }
        return Response(200, orjson.dumps(found), [], position=interest.through)

    async def _stream(self, call: Call) -> StreamInfo:
        name = utf8_path(call.parameters[0])
        principal = await call.authenticate(read_head(call.scope["headers"]).credential)
        require_producer(principal, name)
        return await self._authorizer.stream(principal, name)


def require_producer(principal: Principal, stream: str) -> None:
    """Raise Forbidden unless the caller may emit into the stream or manage it."""
    if stream == "system":
        raise errors.Forbidden("Only the hub itself writes to the stream `system`.")
    if not principal.may("manage", stream):
        principal.require("emit", stream)


async def interested_in(interest: StreamInterest, shape: Shape) -> InterestAnswer:
    """Return whether any client is interested in events of a shape. Without the policy `quench` the
    listeners are unknown, so the answer is never `no`. A large closure takes tens of milliseconds.
    """
    check = InterestCheck(interest.closure, shape, interest.hierarchy)
    await run_in_slices(check.steps())
    found = check.answer
    return found if interest.quench or found != "no" else "maybe"


def interest_json(interest: StreamInterest) -> StreamInterestJson:
    """Return the interest as producers receive it."""
    supertypes: list[SupertypesJson] = [
        {"domain": domain, "type": type, "supertypes": names}
        for (domain, type), names in sorted(interest.supertypes.items())
    ]
    return {
        "filter": interest.filter,
        "alternatives": interest.alternatives,
        "widened": interest.closure.widened,
        "supertypes": supertypes,
        "quench": interest.quench,
        "tag": interest.tag,
        "sequence": interest.through.sequence,
    }


def audience_of(value: Any) -> Audience:
    """Parse groups of clients; None: all clients. Raises InvalidField, FieldTooLong."""
    if value is None:
        return None
    texts = isinstance(value, list) and all(isinstance(one, str) and one for one in value)
    if not value or not texts:
        raise errors.InvalidField("`audience` is a list of client groups.", field="audience")
    if len(value) > limits.QUERY_NAMES_MAX:
        message = f"`audience` has at most {limits.QUERY_NAMES_MAX} groups."
        raise errors.FieldTooLong(message, field="audience", max=limits.QUERY_NAMES_MAX)
    if any("\0" in one or len(one) > limits.NAME_CHARS_MAX for one in value):
        raise errors.InvalidField("There is no such group.", field="audience")
    return tuple(sorted(set(value)))


def _queried_audience(query: dict[str, str]) -> Audience:
    return audience_of(query["audience"].split(",")) if query else None


def _fields(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        refuse_json(error)
    if not isinstance(found, dict):
        raise errors.InvalidField("The body is an object with a `shape`.", field="body")
    for name in found:
        if name not in InterestRequest.__annotations__:
            raise errors.UnknownField(field=name[: limits.NAME_CHARS_MAX])
    if "shape" not in found:
        raise errors.MissingField(field="shape")
    return found


def _has_tag(headers: Headers, tag: str) -> bool:
    return any(name == b"if-none-match" and tag.encode() in value for name, value in headers)
