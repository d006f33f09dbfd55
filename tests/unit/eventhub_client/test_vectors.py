"""The vectors that the Python client and the TypeScript client share."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from eventhub_client import errors
from eventhub_client.callbacks import UnverifiedCallback, verify
from eventhub_client.errors import RETRY, GapError, refusal
from eventhub_client.listening import pause_bounds_s
from eventhub_client.position import Item, ReadPosition, Subscription
from eventhub_client.transports import EventStream, close_problem
from eventhub_client.types import Cursor, Delivered, HubProblem, LossDetected, Snapshot

HOME = Path(__file__).resolve().parents[3]
VECTORS = json.loads((HOME / "clients/test_vectors.json").read_bytes())


def cases(kind: str, name: str = "name") -> pytest.MarkDecorator:
    found = VECTORS[kind]
    return pytest.mark.parametrize("case", found, ids=[str(one.get(name)) for one in found])


def start_of(found: Any) -> Any:
    return Cursor(**found) if isinstance(found, dict) else found


def taken(position: ReadPosition, message: dict[str, Any]) -> Any:
    """Return the result of a message as the vectors write it."""
    try:
        item: Item | None = position.take(message)
    except LossDetected as error:
        return {"error": "LossDetected", "known": error.known, "prev": error.prev}
    except HubProblem as error:
        found: dict[str, Any] = {"error": type(error).__name__}
        if isinstance(error, GapError):
            found["missing"] = None if error.missing is None else error.missing._asdict()
        if isinstance(error, GapError | errors.SegmentMismatchError):
            resume = error.resume
            found["resume"] = resume if isinstance(resume, str) else resume._asdict()
        return found
    if isinstance(item, Delivered):
        return {"event": item.cursor._asdict()}
    if isinstance(item, Snapshot):
        items = [[one.key, one.sequence] for one in item.items]
        return {"snapshot": items, "cursor": item.cursor._asdict()}
    return None


@cases("positions")
def test_a_listener_decides_about_each_message_and_resumes_where_it_was(
    case: dict[str, Any],
) -> None:
    state = case.get("state", "")
    position = ReadPosition(Subscription("orders", start_of(case["start"]), state=state))
    for message, result in case["steps"]:
        assert taken(position, message) == result
    request = orjson.loads(position.request())
    assert request["from"] == case["from"]
    assert request.get("state", "") == case.get("state_after", state)


@cases("requests", "start")
def test_a_request_is_a_message_or_a_query(case: dict[str, Any]) -> None:
    mask = int(case["mask"]) if isinstance(case["mask"], str) else case["mask"]
    position = ReadPosition(Subscription("orders", start_of(case["start"]), mask, case["filter"]))
    assert orjson.loads(position.request()) == case["message"]
    assert position.query() == case["query"]


@cases("backoff", "attempt")
def test_pauses_have_bounds(case: dict[str, Any]) -> None:
    found = pause_bounds_s(case["attempt"], case["retry_after_s"])
    assert found == pytest.approx(tuple(case["bounds_s"]))


@cases("event_streams")
def test_server_sent_events_are_the_same_however_their_bytes_are_cut(case: dict[str, Any]) -> None:
    text = case["text"].encode()
    for size in (1, 2, 3, 7, len(text)):
        stream = EventStream()
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        found = [event._asdict() for chunk in chunks for event in stream.feed(chunk)]
        assert found == case["events"]


@cases("problems", "problem")
def test_a_problem_is_an_error_of_its_reaction(case: dict[str, Any]) -> None:
    error = refusal(case["problem"])
    assert (type(error).__name__, error.status in RETRY) == (case["class"], case["retry"])


@cases("closes", "code")
def test_a_close_is_a_problem_or_a_lost_connection(case: dict[str, Any]) -> None:
    found = close_problem(case["code"], case["reason"])
    keys = ("code", "status", "retry_after_s")
    assert case["problem"] == (
        None if found is None else {key: getattr(found, key) for key in keys}
    )


@cases("signatures")
def test_a_signature_is_accepted_or_refused(case: dict[str, Any]) -> None:
    given = case["keys"], case["headers"], case["body"].encode()
    if case["id"] is None:
        with pytest.raises(UnverifiedCallback):
            verify(*given, now_s=case["now_s"])
    else:
        assert verify(*given, now_s=case["now_s"]) == case["id"]


@cases("cursors", "text")
def test_a_cursor_is_parsed_or_refused(case: dict[str, Any]) -> None:
    if case["cursor"] is None:
        with pytest.raises(ValueError, match="segment"):
            Cursor.parse(case["text"])
    else:
        assert Cursor.parse(case["text"]) == Cursor(**case["cursor"])
