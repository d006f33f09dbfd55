"""When delayed events are due, and what of them is refused."""

from typing import Any

import pytest

from eventhub.base import errors, limits
from eventhub.event.delays import take_due_us
from eventhub.event.inbound import from_objects, stored_bytes
from eventhub.event.protobuf_codec import decode

EVENT = {"domain": "d", "type": "t"}
NOW_US = 1_800_000_000_000_000  # 2027-01-15T08:00:00Z
DUE = "2027-01-15T08:00:02Z"


def due_us(**fields: Any) -> int:
    [event] = from_objects([{**EVENT, **fields}])
    found = take_due_us(event, NOW_US)
    stored_bytes(event, client="c", mask=1)  # takes no event that is still delayed
    return found - NOW_US


@pytest.mark.parametrize(
    ("given", "after_us"),
    [
        ({"delay_ms": 0}, 0),
        ({"delay_ms": 1}, 1_000),
        ({"delay_ms": limits.TIMER_AHEAD_S_MAX * 1_000}, limits.TIMER_AHEAD_S_MAX * 1_000_000),
        ({"deliver_at": DUE}, 2_000_000),
        ({"deliver_at": "2027-01-15T10:00:00.5+02:00"}, 500_000),
        ({"deliver_at": "2027-01-14T08:00:00Z"}, -86_400_000_000),
        ({"deliver_at": DUE, "expires_at": "2027-01-15T08:00:03Z"}, 2_000_000),
    ],
)
def test_the_time_at_which_an_event_is_due(given: dict[str, Any], after_us: int) -> None:
    assert due_us(**given) == after_us


def test_the_lifetime_of_a_delayed_event_begins_when_it_is_due() -> None:
    [event] = from_objects([{**EVENT, "deliver_at": DUE, "expires_in_ms": 1_500}])
    due = take_due_us(event, NOW_US)
    found = decode(stored_bytes(event, client="c", mask=1))
    assert found.expires_at_us == due + 1_500_000 == NOW_US + 3_500_000


@pytest.mark.parametrize(
    ("given", "field", "error"),
    [
        ({"delay_ms": 1, "deliver_at": DUE}, "delay_ms", errors.InvalidField),
        ({"delay_ms": -1}, "delay_ms", errors.InvalidField),
        ({"delay_ms": 1.5}, "delay_ms", errors.InvalidField),
        ({"delay_ms": "1000"}, "delay_ms", errors.InvalidField),
        ({"delay_ms": limits.TIMER_AHEAD_S_MAX * 1_000 + 1}, "delay_ms", errors.InvalidField),
        ({"deliver_at": "2027-01-14T07:59:59Z"}, "deliver_at", errors.InvalidField),
        ({"deliver_at": "2038-01-15T08:00:00Z"}, "deliver_at", errors.InvalidField),
        ({"deliver_at": "1970-01-01T00:00:00Z"}, "deliver_at", errors.InvalidField),
        ({"deliver_at": "2027-01-15T08:00:00"}, "deliver_at", errors.InvalidField),
        ({"deliver_at": "tomorrow"}, "deliver_at", errors.InvalidField),
        ({"deliver_at": DUE, "expires_at": DUE}, "expires_at", errors.InvalidField),
    ],
)
def test_a_refused_delay_names_its_field(
    given: dict[str, Any], field: str, error: type[errors.EventHubError]
) -> None:
    with pytest.raises(error) as caught:
        due_us(**given)
    assert caught.value.field == field


@pytest.mark.parametrize("given", [{"delay_ms": 0}, {"deliver_at": DUE}])
def test_only_emits_are_delayed(given: dict[str, Any]) -> None:
    """Events of timers, and states of keys, are read by the same code."""
    [event] = from_objects([{**EVENT, **given}])
    with pytest.raises(errors.InvalidField) as caught:
        stored_bytes(event, client="c", mask=1)
    assert [caught.value.field] == [*given]
