"""Event occurrences as MCP Events transmits them: in the answer to a poll, and as notifications on
the stream of a subscription. Plain module.
"""

from typing import Any

import orjson

from delivery.listening.frames import CompiledForm, EventHeader
from delivery.mcp.errors import FORBIDDEN, INTERNAL_ERROR, NOT_FOUND
from delivery.mcp.protocol import SUBSCRIPTION_ID, RequestId, notification, result_body
from eventhub.event.json_codec import time_text
from eventhub.eventlog.start_positions import cursor_text
from eventhub.eventlog.stored import Cursor, StoredEvent

_ENDED = {401: FORBIDDEN, 403: FORBIDDEN, 404: NOT_FOUND}  # by the status of the hub's error
_DELETED = "stream_deleted"


def occurrence(name: str, stored: StoredEvent) -> dict[str, Any]:
    """Return an event as an occurrence. Its id is its position in the log, so it is the same in
    every delivery.
    """
    return {
        "eventId": cursor_text(stored.cursor),
        "name": name,
        "timestamp": time_text(stored.appended_at_us),
        "data": orjson.Fragment(stored.json),
    }


class PolledOccurrences:
    """The occurrences of a poll. `truncated`: events before them are missing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.truncated = False

    def event(self, header: EventHeader, stored: StoredEvent) -> bytes:
        return orjson.dumps(occurrence(self._name, stored))

    def compiled(self, subject: str, segment: str) -> CompiledForm | None:
        return None

    def state(self, subject: str, key: str, stored: StoredEvent) -> bytes:
        return b""  # a subscription reads no snapshots

    def message(self, fields: dict[str, Any]) -> bytes:
        """Note a gap; an answer has no other messages."""
        self.truncated |= fields["op"] == "gap"
        return b""


class StreamedOccurrences(PolledOccurrences):
    """The notifications of one `events/stream` request, as server-sent events."""

    def __init__(self, name: str, id: RequestId) -> None:
        super().__init__(name)
        self._id = id
        self._active = False

    def begin(self) -> bytes:
        return b""

    def event(self, header: EventHeader, stored: StoredEvent) -> bytes:
        cursor = cursor_text(stored.cursor)
        return self._notify("event", {**occurrence(self._name, stored), "cursor": cursor})

    def message(self, fields: dict[str, Any]) -> bytes:
        """Return what a message of the listener means to the subscriber; nothing of some."""
        match fields["op"]:
            case "listening":
                self._active = True
                return self._confirm(fields["cursor"], truncated=self.truncated)
            case "gap":
                self.truncated = True  # reported with the confirmation, unless that was sent
                return self._confirm(fields["cursor"], truncated=True) if self._active else b""
            case "status" if fields["state"] == "waiting":
                return self._notify("error", {"error": _error(INTERNAL_ERROR, fields)})
            case "error":
                return self._terminated(fields) + self.end()
            case "resume" | "segment_mismatch":  # the subscriber continues in another request
                return self.end()
        return b""

    def ping(self, position: dict[str, Any] | None, cursor: Cursor) -> bytes:
        return self._notify("heartbeat", {"cursor": cursor_text(cursor)})

    def end(self) -> bytes:
        """Return the result that closes the stream."""
        return _sse(result_body(self._id, {"_meta": {SUBSCRIPTION_ID: self._id}}))

    def _confirm(self, cursor: dict[str, Any], *, truncated: bool) -> bytes:
        text = cursor_text(Cursor(**cursor))
        return self._notify("active", {"cursor": text, "truncated": truncated})

    def _terminated(self, fields: dict[str, Any]) -> bytes:
        """Return that the subscription has ended; nothing if another request may continue it."""
        code = NOT_FOUND if fields["code"] == _DELETED else _ENDED.get(fields["status"])
        return b"" if code is None else self._notify("terminated", {"error": _error(code, fields)})

    def _notify(self, kind: str, params: dict[str, Any]) -> bytes:
        params["_meta"] = {SUBSCRIPTION_ID: self._id}
        return _sse(notification(f"notifications/events/{kind}", params))


def _error(code: int, fields: dict[str, Any]) -> dict[str, Any]:
    return {"code": code, "message": fields["detail"], "data": {"code": fields["code"]}}


def _sse(message: bytes) -> bytes:
    """Return a message as a server-sent event; a body emitted as bytes may have line ends between
    its tokens.
    """
    return b"data: %b\n\n" % message.replace(b"\n", b" ").replace(b"\r", b" ")
