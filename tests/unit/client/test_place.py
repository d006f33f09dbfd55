"""The client's side of the session protocol, without a connection."""

from typing import Any

import orjson
import pytest

from eventhub.client.remote import _Place
from eventhub.client.types import Cursor, HubProblem, LossDetected, Receipt

S1, S2 = "5a4f0c0e-0000-4000-8000-000000000001", "5a4f0c0e-0000-4000-8000-000000000002"


def place(**more: Any) -> _Place:
    made = _Place("orders", more.pop("start", "now"), more.pop("mask", None), more)
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


def ping(sequence: int, prev: int) -> dict[str, Any]:
    return {
        "op": "ping",
        "positions": {"client": {"segment": S1, "sequence": sequence, "prev": prev}},
    }


def resumes_from(made: _Place) -> Any:
    return orjson.loads(made.request())["from"]


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ("now", "now"),
        ("oldest", "oldest"),
        (Cursor(S1, 7), {"segment": S1, "sequence": 7}),
    ],
)
def test_the_first_request_carries_start_mask_and_pairs(start: Any, said: Any) -> None:
    made = place(start=start, mask=1 << 63, domain="d", attributes={"a": 1})
    assert orjson.loads(made.request()) == {
        "op": "listen",
        "listen": "client",
        "stream": "orders",
        "mask": str(1 << 63),
        "domain": "d",
        "attributes": {"a": 1},
        "from": said,
    }


def test_it_resumes_from_where_the_listen_began_even_before_the_first_event() -> None:
    made = place()
    made.take(listening(41))
    assert resumes_from(made) == {"segment": S1, "sequence": 41}


def test_it_resumes_from_the_last_event_in_its_segment() -> None:
    made = place()
    made.take(listening())
    delivered = [made.take(event(1, 0)), made.take(event(3, 1, S2))]
    assert [d.cursor for d in delivered if d] == [Cursor(S1, 1), Cursor(S2, 3)]
    assert resumes_from(made) == {"segment": S2, "sequence": 3}


def test_a_ping_moves_the_position_past_what_was_filtered() -> None:
    made = place()
    made.take(listening())
    assert made.take(ping(50, 0)) is None
    assert resumes_from(made) == {"segment": S1, "sequence": 50}
    assert made.take(event(51, 50)) is not None
    assert made.take({"op": "ping", "positions": {}}) is None


@pytest.mark.parametrize("lost", [event(3, 2), ping(9, 2)])
def test_a_frame_that_does_not_follow_what_is_known_is_a_loss(lost: dict[str, Any]) -> None:
    made = place()
    made.take(listening())
    made.take(event(1, 0))
    with pytest.raises(LossDetected) as caught:
        made.take(lost)
    assert (caught.value.known, caught.value.prev) == (1, 2)


def test_a_loss_of_the_very_first_event_is_seen() -> None:
    made = place(start=Cursor(S1, 40))
    with pytest.raises(LossDetected):
        made.take(event(42, 41))


@pytest.mark.parametrize("op", ["gap", "segment_mismatch", "error"])
def test_refusals_are_raised_with_code_status_and_position(op: str) -> None:
    problem = {"op": op, "code": "c", "status": 410, "position": {"field": "f"}, "detail": "d"}
    with pytest.raises(HubProblem, match="c: d") as caught:
        place().take(problem)
    assert (caught.value.code, caught.value.status) == ("c", 410)
    assert caught.value.position == {"field": "f"}


@pytest.mark.parametrize("op", ["status", "resume", "pong", "something new"])
def test_other_messages_mean_nothing_to_a_listener(op: str) -> None:
    assert place().take({"op": op}) is None


def test_a_receipt_knows_its_last_place() -> None:
    ranges = [{"segment": S1, "first": 1, "last": 3}, {"segment": S2, "first": 4, "last": 4}]
    duplicates = [{"index": 2, "segment": S1, "sequence": 1}]
    made = Receipt.of({"stream": "s", "ranges": ranges, "duplicates": duplicates})
    assert made.cursor == Cursor(S2, 4)
    assert made.duplicates[0].at == 2
    again = Receipt.of({"stream": "s", "ranges": [], "duplicates": duplicates})
    assert again.cursor == Cursor(S1, 1)
