"""Quotas that are reached and left: how they are marked and announced."""

import pytest

from delivery.tenant_limits.usage import Bounded, _Watched, mark_reached
from eventhub.base import limits
from eventhub.postgresql.connections import connect
from tests.integration.callbacks_world import CallbacksWorld

QUOTA = "INSERT INTO quotas (zone_id, client_id, kind, value) VALUES (%s, %s, 'endpoints', 1)"
MARKS = "SELECT client_id, reached_at IS NOT NULL FROM quotas ORDER BY client_id NULLS FIRST"


async def mark(world: CallbacksWorld) -> list[tuple[int | None, bool]]:
    async with await connect(world.url, name="eventhub test") as connection:
        await mark_reached(connection)
    return world.sql(MARKS)


async def test_a_zone_and_its_client_reach_their_quotas_at_once(world: CallbacksWorld) -> None:
    """Their announcements could not be sorted, so no quota was marked from then on."""
    zone_id = world.one("SELECT id FROM zones WHERE name = 'default'")
    for client_id in (None, world.client_id):
        world.sql(QUOTA, zone_id, client_id)
    world.endpoint("http://127.0.0.1:1/")
    assert await mark(world) == [(None, True), (world.client_id, True)]


async def test_a_quota_is_reached_for_a_while_at_least(
    world: CallbacksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone_id = world.one("SELECT id FROM zones WHERE name = 'default'")
    world.sql(QUOTA, zone_id, None)
    endpoint = world.endpoint("http://127.0.0.1:1/")
    assert await mark(world) == [(None, True)]
    world.sql("UPDATE endpoints SET deleted_at = now() WHERE id = %s", endpoint)
    assert await mark(world) == [(None, True)]
    monkeypatch.setattr(limits, "QUOTA_REACHED_S_MIN", 0.0)
    assert await mark(world) == [(None, False)]


@pytest.mark.parametrize(
    ("reached", "used", "expected"),
    [(False, 99, False), (False, 100, True), (True, 95, True), (True, 94, False)],
)
def test_near_its_value_a_quota_stays_as_it_was(reached: bool, used: int, expected: bool) -> None:
    quota = _Watched(1, *Bounded(1, 0, "sockets"), 100, reached)
    assert quota.is_reached(used) is expected
