"""The types of the messages that the hub sends to readers, over websockets and as server-sent
events; docs/session-protocol.md describes each. Plain module.

The AsyncAPI document is generated from them, and the tests check every message that they receive
against it. A schema has the name of its type without `Json`.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from delivery.listening.frames import Liveness
from delivery.ordering.held import Disorder
from eventhub.event.json_codec import EventJson
from eventhub.event.json_types import Int64, Time, Uuid
from eventhub.eventlog.stored import CursorJson
from eventhub.http.emitted import EmittedJson
from registrations.filters.closure.shapes import InterestAnswer
from registrations.interest.routes import SupertypesJson


class SentHelloJson(TypedDict):
    """The hub's first message on a websocket."""

    op: Literal["hello"]
    protocol: Literal["eventhub.v1"]
    client: str
    zone: str
    ping_s: Annotated[float, Meta(description="The seconds between the hub's pings.")]
    listeners_max: int
    sessions_max: int


class SubjectJson(TypedDict):
    """What a message is about: a listener of a websocket, or a session and its stream; neither if
    the connection has one listener.
    """

    listener: NotRequired[str]
    session: NotRequired[str]
    stream: NotRequired[str]


class SentListeningJson(SubjectJson):
    """A listener, or a stream of a session, has started after `cursor`."""

    op: Literal["listening"]
    cursor: CursorJson
    head: Annotated[Int64, Meta(description="The last sequence of the stream at that moment.")]


class SentEventJson(SubjectJson, CursorJson):
    """An event. Its `prev` proves that no frame before it was lost; an event that was handed out by
    a sharing group, or comes again, has `attempt` instead.
    """

    op: Literal["event"]
    prev: NotRequired[Int64]
    attempt: NotRequired[int]
    liveness: Liveness
    registrations: NotRequired[list[Int64]]
    bindings: NotRequired[
        Annotated[
            dict[str, dict[str, CursorJson]],
            Meta(description="By registration: the variable that its filter binds to the event."),
        ]
    ]
    out_of_order: NotRequired[Disorder]
    latest_version: NotRequired[
        Annotated[str, Meta(description="Of the type, if it is newer than the event's.")]
    ]
    signature: NotRequired[str]
    appended_at: Time
    event: EventJson


class ReportedPositionJson(CursorJson):
    """The position of a listener that advanced without a matching event."""

    prev: Int64


class SentPingJson(TypedDict):
    """A heartbeat on a websocket, with the listeners whose cursors advanced without an event."""

    op: Literal["ping"]
    positions: dict[str, ReportedPositionJson]


class SentPositionJson(ReportedPositionJson):
    """The same as a server-sent event."""

    op: Literal["position"]
    cursor: CursorJson


class SentStoppedJson(TypedDict):
    """The answer to `stop`."""

    op: Literal["stopped"]
    listener: str
    cursor: CursorJson


class MissingJson(TypedDict):
    """Sequences that are no longer stored."""

    first: Int64
    last: Int64


class SentResentJson(TypedDict):
    """The answer to `resend` is complete."""

    op: Literal["resent"]
    listener: str
    events: int
    missing: list[MissingJson]


class SessionStreamJson(TypedDict):
    """The position of a session in one of its streams."""

    stream: str
    cursor: CursorJson
    head: Int64


class SessionSettingsJson(TypedDict):
    """The settings of a session on this connection."""

    session: str
    window: Annotated[int | None, Meta(description="Null: the events need no acknowledgement.")]
    order: str
    quality: str


class SentConnectedJson(SessionSettingsJson):
    """The answer to `connect`."""

    op: Literal["connected"]
    streams: list[SessionStreamJson]


class SentChangedJson(SessionSettingsJson):
    """The settings of a session were changed."""

    op: Literal["changed"]


class SentDisconnectedJson(TypedDict):
    """The hub sends no more events of the session over this connection. With the reason `changed`
    it has the fields of an error, too.
    """

    op: Literal["disconnected"]
    session: str
    reason: Literal["stopped", "request", "replaced", "deleted", "changed"]


class SentAckedJson(TypedDict):
    """The acknowledgement with this id is stored."""

    op: Literal["acked"]
    session: str
    stream: str
    id: str


class SentEmittedJson(EmittedJson):
    """The events of an `emit` are stored."""

    op: Literal["emitted"]
    session: NotRequired[str]
    id: NotRequired[str]


class SentStateJson(SubjectJson, CursorJson):
    """The latest event of a key in a snapshot of a keyed stream."""

    op: Literal["state"]
    key: str
    appended_at: Time
    event: EventJson


class SentStateEndJson(SubjectJson):
    """The snapshot is complete at `cursor`; events follow."""

    op: Literal["state_end"]
    cursor: CursorJson


class SentInterestJson(TypedDict):
    """The interest in a stream: its closure, or for a shape whether anyone is interested."""

    op: Literal["interest"]
    interest: str
    stream: str
    interested: NotRequired[InterestAnswer]
    filter: NotRequired[str]
    alternatives: NotRequired[list[str]]
    widened: NotRequired[bool]
    supertypes: NotRequired[list[SupertypesJson]]
    tag: NotRequired[str]
    quench: bool
    sequence: Int64


class SentConfirmedJson(TypedDict):
    """The interest at a moment after the request has this tag."""

    op: Literal["confirmed"]
    interest: str
    id: str
    tag: str
    quench: bool
    sequence: Int64


class SentForgottenJson(TypedDict):
    """The answer to `forget`."""

    op: Literal["forgotten"]
    interest: str


class SentPongJson(TypedDict):
    """The answer to `ping`."""

    op: Literal["pong"]
    id: str


class SentStatusJson(TypedDict):
    """While the database is unavailable, no events are sent. `waiting` has the fields of an
    error.
    """

    op: Literal["status"]
    state: Literal["waiting", "resumed"]


class SentResumeJson(TypedDict):
    """The last message to a slow reader: resume from the last event received."""

    op: Literal["resume"]
    reason: Literal["slow_reader"]
    sent: NotRequired[dict[str, CursorJson]]


class SentProblemJson(SubjectJson):
    """The fields of a problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    code: Annotated[str, Meta(description="The stable name of the error, for programs.")]
    detail: str
    position: dict[str, Any]


class SentErrorJson(SentProblemJson):
    """A request was refused, or a listener, session or interest has ended. As a server-sent event
    its name is `problem`.
    """

    op: Literal["error"]
    interest: NotRequired[str]
    id: NotRequired[str]


class SegmentBoundsJson(TypedDict):
    """A segment with its first and last sequence."""

    segment: Uuid
    first: Int64
    last: Int64


class SentGapJson(SentProblemJson):
    """The next events are no longer stored. `then`: what follows; without it the listener ended."""

    op: Literal["gap"]
    then: NotRequired[Literal["events", "state"]]
    cursor: NotRequired[CursorJson]
    missed: NotRequired[MissingJson]
    first_available: NotRequired[CursorJson]
    resume: NotRequired[CursorJson]


class SentSegmentMismatchJson(SentProblemJson):
    """The cursor does not belong to this stream's history."""

    op: Literal["segment_mismatch"]
    then: NotRequired[Literal["events"]]
    cursor: NotRequired[CursorJson]
    current: NotRequired[SegmentBoundsJson | None]


LISTENER_MESSAGES: tuple[type, ...] = (
    SentListeningJson,
    SentEventJson,
    SentStateJson,
    SentStateEndJson,
    SentGapJson,
    SentSegmentMismatchJson,
    SentErrorJson,
    SentStatusJson,
    SentResumeJson,
)
SESSION_MESSAGES: tuple[type, ...] = (
    SentConnectedJson,
    SentListeningJson,
    SentEventJson,
    SentChangedJson,
    SentDisconnectedJson,
    SentGapJson,
    SentSegmentMismatchJson,
    SentErrorJson,
    SentStatusJson,
    SentResumeJson,
)
STREAM_EVENTS: tuple[type, ...] = (*LISTENER_MESSAGES, SentPositionJson)
SOCKET_MESSAGES: tuple[type, ...] = (
    SentHelloJson,
    *dict.fromkeys((*LISTENER_MESSAGES, *SESSION_MESSAGES)),
    SentPingJson,
    SentPongJson,
    SentStoppedJson,
    SentResentJson,
    SentAckedJson,
    SentEmittedJson,
    SentInterestJson,
    SentConfirmedJson,
    SentForgottenJson,
)
"""By connection: a response of server-sent events of a stream, of a session, a websocket."""
