"""What a subscriber of MCP Events gets for each message of a listener."""

from typing import Any

import orjson

from delivery.mcp.frames import PolledOccurrences, StreamedOccurrences
from eventhub.base.errors import DatabaseUnavailable, Forbidden
from eventhub.eventlog.errors import StreamDeleted
from eventhub.eventlog.stored import Cursor

CURSOR = Cursor("4f0c2d3e-6d6a-4b0e-9d52-1f6f6d1c2a10", 7)
TEXT = "4f0c2d3e-6d6a-4b0e-9d52-1f6f6d1c2a10:7"
LISTENING = {"op": "listening", "cursor": CURSOR._asdict()}
GAP = {"op": "gap", "then": "events", "cursor": CURSOR._asdict()}


def sent(frames: bytes) -> list[dict[str, Any]]:
    """Return the messages of some frames, each without the id of its subscription."""
    found = []
    for frame in frames.decode().split("\n\n")[:-1]:
        message = orjson.loads(frame.removeprefix("data: "))
        about = message.get("params") or message["result"]
        assert about.pop("_meta")["io.modelcontextprotocol/subscriptionId"] == "s"
        found.append(message)
    return found


def kinds(frames: bytes) -> list[str]:
    return [one.get("method", "result").rpartition("/")[2] for one in sent(frames)]


def active() -> StreamedOccurrences:
    form = StreamedOccurrences("shop::order", "s")
    [message] = sent(form.message(LISTENING))
    assert message["method"] == "notifications/events/active"
    assert message["params"] == {"cursor": TEXT, "truncated": False}
    return form


def test_a_gap_at_the_start_is_part_of_the_confirmation() -> None:
    form = StreamedOccurrences("shop::order", "s")
    assert form.message(GAP) == b""
    [message] = sent(form.message(LISTENING))
    assert message["params"] == {"cursor": TEXT, "truncated": True}


def test_a_later_gap_is_another_confirmation() -> None:
    [message] = sent(active().message(GAP))
    assert message["method"] == "notifications/events/active"
    assert message["params"] == {"cursor": TEXT, "truncated": True}


def test_a_heartbeat_has_the_cursor_also_if_it_is_known() -> None:
    for position in (None, {"prev": 5}):
        [message] = sent(active().ping(position, CURSOR))
        assert message["method"] == "notifications/events/heartbeat"
        assert message["params"] == {"cursor": TEXT}


def test_an_outage_of_the_database_is_no_end() -> None:
    form, problem = active(), DatabaseUnavailable().problem()
    [message] = sent(form.message({"op": "status", "state": "waiting", **problem}))
    assert message["method"] == "notifications/events/error"
    assert message["params"]["error"]["data"] == {"code": "database_unavailable"}
    assert form.message({"op": "status", "state": "resumed"}) == b""


def test_lost_rights_and_a_deleted_stream_end_the_subscription() -> None:
    for error, code in ((Forbidden(), -32024), (StreamDeleted(), -32023)):
        frames = active().message({"op": "error", **error.problem()})
        assert kinds(frames) == ["terminated", "result"]
        assert sent(frames)[0]["params"]["error"]["code"] == code


def test_a_slow_subscriber_may_continue_in_another_request() -> None:
    for op in ("resume", "segment_mismatch"):
        assert kinds(active().message({"op": op})) == ["result"]
    assert kinds(active().message({"op": "error", **DatabaseUnavailable().problem()})) == ["result"]


def test_a_poll_notes_a_gap_and_nothing_else() -> None:
    form = PolledOccurrences("shop::order")
    assert form.message(LISTENING) == b""
    assert form.truncated is False
    assert form.message(GAP) == b""
    assert form.truncated is True
