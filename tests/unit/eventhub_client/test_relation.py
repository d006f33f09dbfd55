"""The relation of events to an own change, as a table (EMC, "PUT SEQUENCE 30 EXAMPLE")."""

import pytest
from eventhub_client.relation import Own, Relation, relation
from eventhub_client.types import Caused, Cursor, Delivered, Duplicate, Range, Receipt, Reply

S1, S2 = "5a4f0c0e-0000-4000-8000-000000000001", "5a4f0c0e-0000-4000-8000-000000000002"
BEFORE, OWN = Relation("before"), Relation("own")
STALE, AFTER = Relation("after", stale=True), Relation("after")


def event(sequence: int, key: str = "r", segment: str = S1) -> Delivered:
    return Delivered(segment, sequence, sequence - 1, "live", {"key": key})


@pytest.mark.req("EMC-11")
@pytest.mark.parametrize(
    "own",
    [
        30,
        Caused(S1, 30, 30),
        Range(S1, 30, 30),
        Reply(None, caused=Caused(S1, 30, 30)),
        Receipt("s", (Range(S1, 30, 30),), ()),
        Receipt("s", (), (Duplicate(0, S1, 30),)),
    ],
)
def test_29_is_before_30_is_own_31_is_after_and_stale(own: Own) -> None:
    assert relation(own, event(29), about="r") == BEFORE
    assert relation(own, event(30), about="r") == OWN
    assert relation(own, event(31), about="r") == STALE
    assert relation(own, event(31, "other"), about="r") == AFTER
    assert relation(own, event(31, "other")) == STALE, (
        "without `about`, every event concerns the resource"
    )
    assert relation(own, event(31, "x"), about=lambda found: found["key"] == "x") == STALE


def test_a_change_of_several_events_is_a_run() -> None:
    own = Receipt("s", (Range(S1, 30, 31), Range(S2, 32, 33)), ())
    found = [relation(own, event(n, segment=S2 if n > 31 else S1)) for n in range(29, 35)]
    assert found == [BEFORE, OWN, OWN, OWN, OWN, STALE]


def test_a_number_that_was_given_again_is_not_our_change() -> None:
    assert relation(Caused(S1, 30, 30), event(30, segment=S2)) == STALE


def test_a_reply_that_caused_nothing_has_no_relation() -> None:
    with pytest.raises(ValueError, match="names no event"):
        relation(Reply(None, cursor=Cursor(S1, 3)), event(30))
