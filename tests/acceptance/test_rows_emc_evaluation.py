"""EMC-22: selecting by channels evaluates no filter."""

from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.filters.pairs import Pairs
from tests.acceptance.test_rows_emc_order import in_process, take
from tests.acceptance.wire import EVENT
from tests.live import LiveHub, LiveZone

EVENTS = 40


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """Every event that a filter of this process is evaluated for."""
    found: list[Event] = []
    evaluate = Pairs.matches

    def noted(self: Pairs, event: Event) -> bool:
        found.append(event)
        return evaluate(self, event)

    monkeypatch.setattr(Pairs, "matches", noted)
    return found


@pytest.mark.req("EMC-22")
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"mask": 1}, 0),  # channels alone
        ({"mask": 1, "domain": "shop"}, EVENTS // 2),  # pairs of what the channels let through
        ({"domain": "shop"}, EVENTS),
    ],
)
async def test_a_listener_with_a_mask_alone_evaluates_nothing(
    hub: LiveHub, zone: LiveZone, evaluated: list[Event], wanted: dict[str, Any], expected: int
) -> None:
    zone.define_channel("disk", 0)
    zone.define_channel("net", 1)
    zone.create_stream("audit")
    zone.emit("audit", [{**EVENT, "channels": [name]} for name in ("net", "disk")] * (EVENTS // 2))
    async with in_process(hub, zone) as caller:
        count = EVENTS // 2 if "mask" in wanted else EVENTS
        assert len(await take(caller, "audit", count, **wanted)) == count
    assert len(evaluated) == expected
