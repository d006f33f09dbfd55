"""POST /v1/sessions/{session}/acknowledgements: a consumer acknowledges events over HTTP, in any
process. Plain module.
"""

from typing import Annotated, TypedDict

import msgspec
import orjson
from msgspec import Meta, Struct

from delivery.sessions.acknowledging import Acknowledgement
from delivery.sessions.attachments import session_in_path
from delivery.sessions.delivery import SessionDelivery
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import Forbidden, MissingField, UnsupportedMediaType
from eventhub.event.inbound import JSON, NO_NUL, refuse_json
from eventhub.eventlog.stored import CursorJson
from eventhub.http.call import Call
from eventhub.http.messages import Response, read_body, read_head, utf8_path

_Sequence = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Sequences = Annotated[list[_Sequence], Meta(max_length=limits.SESSION_WINDOW_MAX)]


class StreamAcknowledgementIn(Struct, forbid_unknown_fields=True):
    """What is acknowledged in one stream of the session: all events up to a sequence (in the orders
    `fifo` and `none` only), or single events. `nak`: events that could not be processed, and are to
    be delivered again at once.
    """

    stream: Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX, pattern=NO_NUL)]
    sequence: _Sequence | None = None
    sequences: _Sequences | None = None
    nak: _Sequences | None = None


class AcknowledgementsIn(Struct, forbid_unknown_fields=True):
    """What a consumer acknowledges."""

    streams: Annotated[
        list[StreamAcknowledgementIn],
        Meta(min_length=1, max_length=limits.SESSION_ACKNOWLEDGED_STREAMS_MAX),
    ]


class StreamPositionJson(TypedDict):
    """The position of a session in a stream."""

    stream: str
    cursor: Annotated[
        CursorJson,
        Meta(description="Every event up to it is acknowledged, or does not match."),
    ]


class AcknowledgedJson(TypedDict):
    """The session's positions after the acknowledgement, in the streams that it names."""

    session: str
    streams: list[StreamPositionJson]


_decoder = msgspec.json.Decoder(AcknowledgementsIn)


class AcknowledgeHandler:
    """The route's handler in one process."""

    def __init__(self, delivery: SessionDelivery) -> None:
        self._delivery = delivery

    async def __call__(self, call: Call) -> Response:
        """Handle a request. Raises subclasses of BadRequest and Unauthenticated, and what
        `acknowledge` of acknowledging.py raises.
        """
        head = read_head(call.scope["headers"])
        principal = await call.authenticate(head.credential)
        if head.content_type not in ("", JSON):
            raise UnsupportedMediaType("The body is JSON.")
        body = await read_body(
            call.incoming, head.content_length, bytes_max=limits.MANAGE_BODY_BYTES_MAX
        )
        given = _parse(body)
        _require_listen(principal, given)
        session = session_in_path(utf8_path(call.parameters[0]))
        acknowledged = await self._delivery.acknowledge(principal.client_id, session, given)
        streams: list[StreamPositionJson] = [
            {"stream": stream, "cursor": cursor.json()}
            for stream, cursor in acknowledged.cursors.items()
        ]
        answer: AcknowledgedJson = {"session": acknowledged.name, "streams": streams}
        return Response(200, orjson.dumps(answer), [])


def _parse(body: bytes) -> list[Acknowledgement]:
    """Parse the body. Raises subclasses of BadRequest with the field."""
    try:
        found = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        refuse_json(error)
    for index, one in enumerate(found.streams):
        if one.sequence is None and one.sequences is None and one.nak is None:
            raise MissingField(
                "Name what is acknowledged, `sequence` or `sequences`, or what comes again: `nak`.",
                field=f"streams.{index}.sequence",
            )
    return [
        Acknowledgement(one.stream, one.sequence, one.sequences or (), one.nak or ())
        for one in found.streams
    ]


def _require_listen(principal: Principal, given: list[Acknowledgement]) -> None:
    """Raise Forbidden for a stream on which the caller has no grant."""
    for index, one in enumerate(given):
        try:
            principal.require_listen(one.stream)
        except Forbidden as error:
            error.field = error.field or f"streams.{index}.stream"
            raise
