"""Missed heartbeats: the time-out, the grace after an interruption, bounds, deleted zones."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from eventhub.applications.heartbeats import miss_due
from eventhub.base import limits
from eventhub.postgresql.connections import connect
from tests.integration.access_world import EVERYTHING, ApiCaller, caller_with
from tests.integration.committed_world import committing, database, sql

LONG_S = 10_000.0  # longer than every time-out here
TIMEOUT_S = 60


@pytest.fixture(autouse=True)
def _committed(django_db_blocker: Any) -> Iterator[None]:
    with committing("heartbeats", django_db_blocker):
        yield


def miss(watched_s: float = LONG_S) -> int:
    """Look for missed heartbeats once; return how many applications were examined."""

    async def once() -> int:
        async with await connect(database(), name="test") as session:
            return await miss_due(session, watched_s=watched_s)

    return asyncio.run(once())


def monitored(*names: str) -> ApiCaller:
    caller = caller_with(*EVERYTHING)
    for name in names:
        assert caller.put(f"/v1/applications/{name}", {"state": "online"}).status_code == 201
        path = f"/v1/applications/{name}/monitor"
        assert caller.put(path, {"timeout_s": TIMEOUT_S}).status_code == 200
    return caller


def pass_time(seconds: float) -> None:
    """Let all heartbeats and due times be earlier."""
    sql(
        "UPDATE applications SET heartbeat_at = heartbeat_at - %s * interval '1 second',"
        " due_at = due_at - %s * interval '1 second'",
        seconds,
        seconds,
    )


def states() -> dict[str, str]:
    return dict(sql("SELECT name, state FROM applications"))


def test_a_heartbeat_within_the_time_out_is_not_missed() -> None:
    caller = monitored("till")
    assert miss() == 0
    pass_time(TIMEOUT_S - 5)
    assert caller.post("/v1/applications/till/heartbeat", {}).status_code == 200
    pass_time(10)
    assert (miss(), states()) == (1, {"till": "online"})  # it is due, and sent a heartbeat
    assert miss() == 0
    pass_time(TIMEOUT_S)
    assert (miss(), states()) == (1, {"till": "offline"})
    pass_time(TIMEOUT_S)
    assert miss() == 0
    found = caller.get("/v1/applications/till").json()
    assert (found["reason"], found["reported_state"]) == ("heartbeat missed", "online")
    assert caller.post("/v1/applications/till/heartbeat", {}).json()["state"] == "online"
    pass_time(TIMEOUT_S + 1)
    assert (miss(), states()) == (1, {"till": "offline"})


def test_an_interruption_gives_every_application_one_more_time_out() -> None:
    monitored("a", "b")
    pass_time(10 * TIMEOUT_S)
    assert miss(watched_s=1.0) == 2
    assert set(states().values()) == {"online"}
    assert miss(watched_s=2.0) == 0
    sql("UPDATE applications SET due_at = now()")
    assert miss(watched_s=TIMEOUT_S + 1.0) == 2
    assert set(states().values()) == {"offline"}


def test_no_heartbeat_is_expected_of_an_application_that_is_offline_or_no_longer_monitored() -> (
    None
):
    caller = monitored("a", "b")
    caller.put("/v1/applications/a", {"state": "offline", "reason": "at night"})
    caller.delete("/v1/applications/b/monitor")
    pass_time(10 * TIMEOUT_S)
    assert (miss(), states()) == (0, {"a": "offline", "b": "online"})
    caller.put("/v1/applications/a", {"state": "faulted"})
    pass_time(10 * TIMEOUT_S)
    assert (miss(), states()) == (1, {"a": "offline", "b": "online"})


def test_a_pass_is_bounded_and_finds_the_due_ones_by_an_index() -> None:
    monitored("till")
    count = 20_000
    sql(
        "INSERT INTO applications (zone_id, name, state, reason, since, reported_state,"
        " reported_reason, reported_at, heartbeat_at, timeout_s, due_at, created_at)"
        " SELECT zone_id, 'n' || n, state, '', now(), state, '', now(), now(), 60,"
        " now() + interval '1 hour', now() FROM applications, generate_series(1, %s) AS n",
        count,
    )
    sql("ANALYZE applications")
    plan = "\n".join(
        row[0]
        for row in sql(
            "EXPLAIN SELECT id FROM applications WHERE due_at <= now() ORDER BY due_at LIMIT 500"
        )
    )
    assert "applications_due" in plan, plan
    most = limits.HEARTBEATS_MISSED_AT_ONCE
    sql(
        "UPDATE applications SET heartbeat_at = now() - interval '1 hour', due_at = now()"
        " WHERE id IN (SELECT id FROM applications ORDER BY id LIMIT %s)",
        most + 10,
    )
    assert [miss(), miss(), miss()] == [most, 10, 0]
    found = sql("SELECT count(*) FROM applications WHERE state = 'offline'")
    heads = sql(
        "SELECT h.sequence FROM heads h JOIN streams s ON s.id = h.stream_id"
        " WHERE s.name = 'eventhub.applications'"
    )
    assert (found, heads) == ([(most + 10,)], [(2 + most + 10,)])


def test_two_processes_that_look_at_once_append_one_event() -> None:
    monitored("till")
    pass_time(10 * TIMEOUT_S)

    async def both() -> list[int]:
        async with (
            await connect(database(), name="a") as one,
            await connect(database(), name="b") as other,
        ):
            return await asyncio.gather(
                miss_due(one, watched_s=LONG_S), miss_due(other, watched_s=LONG_S)
            )

    asyncio.run(both())
    assert states() == {"till": "offline"}
    caller = caller_with(*EVERYTHING)
    assert caller.get("/v1/streams/eventhub.applications").json()["last"] == 3


def test_applications_of_a_deleted_zone_are_no_longer_due() -> None:
    monitored("till")
    pass_time(10 * TIMEOUT_S)
    sql("UPDATE streams SET deleted_at = now() WHERE name = 'eventhub.applications'")
    assert [miss(), miss()] == [1, 0]
    assert states() == {"till": "online"}
