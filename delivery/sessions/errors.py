"""Errors of delivery to sessions; they belong to the one tree of errors. Plain module."""

from eventhub.base.errors import Conflict, NotFound


class SessionConnected(Conflict):
    """This socket is connected to that session already; `disconnect` it first."""


class SessionNotConnected(NotFound):
    """This socket is not connected to that session, or the session has no such stream; `connect` it
    first.
    """


class SessionDisconnected(Conflict):
    """Delivery to this session, or to its group, is disabled on request: PATCH it with
    `disconnected` false, then connect.
    """


class StreamOfNoRegistration(NotFound):
    """The session has no registration on this stream, so it has no events of it; GET
    /v1/sessions/{session}/positions lists its streams.
    """


class SequenceAhead(Conflict):
    """The stream has no event of this sequence yet; `head` is its last one."""


class SequencesRequired(Conflict):
    """In this order of delivery an event may come before one with a lower sequence, which an
    acknowledgement up to a sequence would lose; name the events in `sequences`.
    """


class AcknowledgementsFull(Conflict):
    """Too many events above the session's cursor are acknowledged; acknowledge those after the
    `cursor` first.
    """


class SessionReplaced(Conflict):
    """A connection serves this session now, and has replaced its pulls; pull again to replace the
    connection, or use a session of its own.
    """


class SessionNotReliable(Conflict):
    """Events of a best-effort session are not delivered again, so it cannot be pulled; PATCH it
    with `quality` `reliable`, or connect it.
    """
