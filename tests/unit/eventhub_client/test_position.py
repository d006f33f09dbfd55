"""The client's side of the session protocol, without a connection."""

from typing import Any

import orjson
import pytest
from eventhub_client.position import Item, ReadPosition, Subscription
from eventhub_client.types import At, Cursor, Delivered, HubProblem, Receipt, Snapshot

S1, S2 = "5a4f0c0e-0000-4000-8000-000000000001", "5a4f0c0e-0000-4000-8000-000000000002"


def place(**more: Any) -> ReadPosition:
    state = more.pop("state", "")
    made = ReadPosition(
        Subscription("orders", more.pop("start", "now"), more.pop("mask", None), more, state)
    )
    made.take({"op": "hello", "client": "c"})
    return made


def listening(sequence: int = 0) -> dict[str, Any]:
    return {"op": "listening", "cursor": {"segment": S1, "sequence": sequence}, "head": 9}


def event(sequence: int, prev: int, segment: str = S1) -> dict[str, Any]:
    return {
        "op": "event",
        "segment": segment,
        "sequence": sequence,
        "prev": prev,
        "liveness": "live",
        "event": {"n": sequence},
    }


def resumes_from(made: ReadPosition) -> Any:
    return orjson.loads(made.request())["from"]


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ("now", "now"),
        ("oldest", "oldest"),
        ("boot", "boot"),
        (Cursor(S1, 7), {"segment": S1, "sequence": 7}),
        (At.of("2026-11-21T09:30:00+01:00"), {"time": "2026-11-21T08:30:00.000000Z"}),
    ],
)
def test_the_first_request_carries_start_mask_and_pairs(start: Any, said: Any) -> None:
    made = place(start=start, mask=1 << 63, domain="d", attributes={"a": 1})
    assert orjson.loads(made.request()) == {
        "op": "listen",
        "listener": "client",
        "stream": "orders",
        "mask": str(1 << 63),
        "domain": "d",
        "attributes": {"a": 1},
        "from": said,
    }


@pytest.mark.parametrize("op", ["gap", "segment_mismatch", "error"])
def test_refusals_are_raised_with_code_status_and_position(op: str) -> None:
    problem = {"op": op, "code": "c", "status": 410, "position": {"field": "f"}, "detail": "d"}
    with pytest.raises(HubProblem, match="c: d") as caught:
        place().take(problem)
    assert (caught.value.code, caught.value.status) == ("c", 410)
    assert caught.value.position == {"field": "f"}


def test_a_receipt_knows_its_last_place() -> None:
    ranges = [{"segment": S1, "first": 1, "last": 3}, {"segment": S2, "first": 4, "last": 4}]
    duplicates = [{"index": 2, "segment": S1, "sequence": 1}]
    made = Receipt.of({"stream": "s", "ranges": ranges, "duplicates": duplicates})
    assert made.cursor == Cursor(S2, 4)
    assert made.duplicates[0].at == 2
    again = Receipt.of({"stream": "s", "ranges": [], "duplicates": duplicates})
    assert again.cursor == Cursor(S1, 1)


def state(key: str, sequence: int) -> dict[str, Any]:
    event = {"key": key, "n": sequence}
    return {"op": "state", "key": key, "segment": S1, "sequence": sequence, "event": event}


def state_end(sequence: int) -> dict[str, Any]:
    return {"op": "state_end", "cursor": {"segment": S1, "sequence": sequence}}


def taken(made: ReadPosition, *messages: dict[str, Any]) -> list[Item]:
    return [item for message in messages if (item := made.take(message)) is not None]


def test_a_snapshot_is_delivered_whole_and_the_listener_continues_from_its_cursor() -> None:
    made = place(state="always")
    assert orjson.loads(made.request())["state"] == "always"
    [found, after] = taken(made, state("a", 3), state("b", 7), state_end(9), event(10, 9))
    assert isinstance(found, Snapshot)
    assert [(item.key, item.sequence) for item in found.items] == [("a", 3), ("b", 7)]
    assert isinstance(after, Delivered)
    assert orjson.loads(made.request())["state"] == "gap", "only what was missed, from here on"
    assert resumes_from(made) == {"segment": S1, "sequence": 10}


def test_an_interrupted_snapshot_starts_again() -> None:
    made = place(state="always")
    taken(made, state("gone", 3))
    assert orjson.loads(made.request())["state"] == "always"
    [found] = taken(made, state("a", 4), state_end(9))
    assert isinstance(found, Snapshot)
    assert [item.key for item in found.items] == ["a"]


def test_a_cursor_as_text_comes_back() -> None:
    assert Cursor.parse(Cursor(S1, 7).text) == Cursor(S1, 7)
