"""Timers under a clock that the test drives: what fires when, what ends them, bounds, failures."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from eventhub.base import limits
from eventhub.base.clock import ManualClock
from eventhub.postgresql.connections import connect
from registrations.timers import firing
from registrations.timers.firing import fire_due
from tests.integration.access_world import caller_with, refused
from tests.integration.committed_world import committing, database, sql
from tests.integration.timers_world import TimersWorld, counted, events, ticks


@pytest.fixture(autouse=True)
def _committed(django_db_blocker: Any) -> Iterator[None]:
    with committing("timers", django_db_blocker):
        yield


@pytest.fixture
def world() -> TimersWorld:
    return TimersWorld()


@pytest.mark.req("RDY-41")
def test_a_single_time_a_relative_one_and_an_interval_with_start_and_end(
    world: TimersWorld,
) -> None:
    world.create("once", at=world.at(5))
    assert world.fires_until(8) == [5]
    assert (world.fires_until(20), world.handles()) == ([], [])
    world.create("later", after_s=5, **{"from": world.at(20)})
    assert world.fires_until(30) == [25]
    repeating = world.create("often", every_s=2, start=world.at(31), end=world.at(36))
    assert repeating["upcoming"] == [
        (world.start + timedelta(seconds=one)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
        for one in (31, 33, 35)
    ]
    assert world.fires_until(40) == [31, 33, 35]
    created = world.create("relative", after_s=90)
    made = datetime.fromisoformat(created["created_at"])
    assert datetime.fromisoformat(created["next_at"]) - made == timedelta(seconds=90)
    assert counted() == [1, 1]


@pytest.mark.req("RDY-42")
def test_a_handle_is_unique_for_its_registration_and_one_is_removed_by_the_pair(
    world: TimersWorld,
) -> None:
    first, second = world.register(), world.register()
    for registration in (first, second, None):
        more = {} if registration is None else {"registration": registration}
        for handle in ("a", "b"):
            world.create(handle, at=world.at(5), **more)
            body = {"stream": "alarms", "handle": handle, "after_s": 1, **more}
            problem = refused(world.caller.post("/v1/timers", body), 409, "timer_exists")
            assert problem["position"] == {"field": "handle"}
    path = f"/v1/registrations/{first}/timers/a"
    assert world.caller.get(path).json()["registration"] == first
    assert world.caller.delete(path).status_code == 204
    refused(world.caller.delete(path), 404, "unknown_timer")
    assert world.handles(f"?registration={first}") == ["b"]
    assert world.fires_until(5) == [5] * 5
    fired = [(one.attributes.get("registration"), one.attributes["handle"]) for one in events()]
    assert sorted(fired, key=str) == sorted(
        [(first, "b"), (second, "a"), (second, "b"), (None, "a"), (None, "b")], key=str
    )
    world.create("a", at=world.at(9), registration=first)  # the pair is free again
    assert counted() == [1, 1]


@pytest.mark.req("RDY-42")
def test_a_repeating_timer_skips_what_it_missed_while_suspended_and_a_single_one_fires(
    world: TimersWorld,
) -> None:
    registration = world.register()
    single = world.create("single", at=world.at(-3600 + 1))  # a second from now
    often = world.create("often", every_s=1, start=world.at(-3600 + 1), registration=registration)
    ended = world.create(
        "ended", every_s=3600, start=world.at(-3500), end=world.at(-3400), suspended=True
    )
    paths = [
        f"/v1/timers/{single['id']}",
        f"/v1/registrations/{registration}/timers/often",
    ]
    for path in paths:
        changed = world.caller.patch(path, {"suspended": True}).json()
        assert (changed["suspended"], changed["upcoming"]) == (True, [])
    assert (world.fire(), events()) == (0, [])
    hour = "interval '1 hour'"
    sql(f"UPDATE timers SET next_at = next_at - {hour}, start = start - {hour}")
    for path in paths:
        assert world.caller.patch(path, {"suspended": False}).json()["suspended"] is False
    resumed = world.caller.get(f"/v1/timers/{often['id']}").json()
    assert datetime.fromisoformat(resumed["next_at"]) > datetime.now(UTC) - timedelta(seconds=5)
    world.clock = ManualClock(int((datetime.now(UTC).timestamp()) * 1e6))
    world.fire()
    assert ("single", 1, 0) in ticks()
    assert len([one for one in ticks() if one[0] == "often"]) <= 1
    sql("UPDATE timers SET \"end\" = now() - interval '1 hour' WHERE id = %s", ended["id"])
    resume = world.caller.patch(f"/v1/timers/{ended['id']}", {"suspended": False})
    refused(resume, 409, "timer_ended")


@pytest.mark.req("RDY-43")
def test_a_tick_names_its_timer_and_is_for_the_client_alone(world: TimersWorld) -> None:
    registration = world.register()
    created = world.create("m", at=world.at(2), registration=registration)
    assert world.fires_until(3) == [2]
    [tick] = events()
    assert (tick.domain, tick.type, tick.source) == ("Time", "Tick", "eventhub")
    assert tick.destinations == ("tester",)
    assert tick.attributes == {
        "handle": "m",
        "timer": created["id"],
        "registration": registration,
        "scheduled_at": created["next_at"],
        "number": 1,
        "missed": 0,
    }
    refused(world.caller.get(f"/v1/timers/{created['id']}"), 404, "unknown_timer")
    assert counted() == [0, 0]


def test_a_timer_with_an_event_is_a_delayed_emit(world: TimersWorld) -> None:
    world.caller.put("/v1/types/shop/order", {"schema": {"required": ["id"]}})
    event = {"domain": "shop", "type": "order", "attributes": {"id": 7}, "key": "k", "priority": 3}
    created = world.create("order", at=world.at(2), event=event)
    assert created["event"]["attributes"] == {"id": 7}
    for wrong, code, field in (
        ({**event, "attributes": {}}, "type_violation", None),
        ({**event, "id": "x"}, "invalid_field", "event.id"),
        ({"domain": "shop"}, "missing_field", "event.type"),
        ({**event, "priority": 5_000}, "invalid_field", "event.priority"),
    ):
        body = {"stream": "alarms", "handle": "wrong", "after_s": 1, "event": wrong}
        answer = world.caller.post("/v1/timers", body)
        assert answer.json()["code"] == code, answer.content
        if field is not None:
            assert answer.json()["position"] == {"field": field}
    assert world.fires_until(3) == [2]
    [found] = events()
    assert (found.attributes, found.key, found.priority, found.source) == (
        {"id": 7}, "k", 3, "tester",
    )  # fmt: skip
    assert found.destinations == ()


def test_an_outage_is_one_fire_that_says_how_many_times_it_stands_for(world: TimersWorld) -> None:
    world.create("often", every_s=10, start=world.at(10))
    world.create("cron", cron="* * * * *", start=world.at(1))
    world.clock.advance_s(125)
    assert (world.fire(), world.fire()) == (2, 0)
    assert [one for one in ticks() if one[0] == "often"] == [("often", 1, 11)]
    world.clock.advance_s(5)
    assert (world.fire(), ticks()[-1]) == (1, ("often", 2, 0))
    found = [one.attributes for one in events()]
    [scheduled] = [one["scheduled_at"] for one in found if one["missed"] == 11]
    assert datetime.fromisoformat(scheduled) == world.start + timedelta(seconds=120)


def test_timers_end_with_their_registration_and_their_client(world: TimersWorld) -> None:
    registration = world.register()
    other = caller_with("emit:*", "listen:*", client_name="other")
    world.create("a", after_s=1, registration=registration)
    world.create("b", after_s=1)
    world.create("c", other, after_s=1)
    assert world.caller.delete(f"/v1/registrations/{registration}").status_code == 204
    assert (world.handles(), counted()) == (["b", "c"], [2, 2])
    assert world.caller.delete("/v1/clients/other").status_code == 204
    assert (world.handles(), counted()) == (["b"], [1, 1])


def test_timers_of_a_deleted_stream_end_and_those_of_one_to_be_deleted_wait(
    world: TimersWorld,
) -> None:
    world.create("a", at=world.at(1))
    world.create("b", every_s=5, start=world.at(1))
    assert world.caller.delete("/v1/streams/alarms?grace_s=3600").status_code == 202
    body = {"stream": "alarms", "handle": "c", "after_s": 1}
    refused(world.caller.post("/v1/timers", body), 409, "stream_deleting")
    assert (world.fires_until(5), counted()) == ([], [2, 2])
    assert world.caller.post("/v1/streams/alarms/restore", {}).status_code == 200
    world.clock.advance_s(limits.TIMER_POSTPONED_S)
    assert world.fire() == 2
    assert [one[0] for one in ticks()] == ["a", "b"]
    sql("UPDATE streams SET deleted_at = now() WHERE name = 'alarms'")
    world.clock.advance_s(10)
    assert (world.fire(), counted()) == (1, [0, 0])


def test_timers_of_a_zone_without_storage_left_wait(world: TimersWorld) -> None:
    world.create("a", at=world.at(1))
    sql(
        "INSERT INTO quotas (zone_id, kind, value, reached_at)"
        " SELECT zone_id, 'stored_bytes', 1, now() FROM timers"
    )
    assert world.fires_until(3) == []
    sql("DELETE FROM quotas")
    world.clock.advance_s(limits.TIMER_POSTPONED_S)
    assert (world.fire(), ticks()) == (1, [("a", 1, 0)])


def test_a_timer_whose_time_zone_is_gone_holds_up_no_other(world: TimersWorld) -> None:
    world.create("gone", cron="* * * * *", start=world.at(1))
    world.create("a", at=world.at(70))
    sql("UPDATE timers SET timezone = 'Europe/Gone' WHERE handle = 'gone'")
    world.clock.advance_s(70)
    assert (world.fire(), ticks()) == (2, [("a", 1, 0)])
    assert world.handles() == ["gone"]
    sql("UPDATE timers SET timezone = 'UTC'")
    world.clock.advance_s(limits.TIMER_POSTPONED_S)
    assert (world.fire(), len(ticks())) == (1, 2)


def test_an_event_of_a_timer_is_bounded(world: TimersWorld) -> None:
    event = {"domain": "d", "type": "t", "body": "x" * limits.TIMER_EVENT_BYTES_MAX}
    body = {"stream": "alarms", "handle": "a", "after_s": 1, "event": event}
    refused(world.caller.post("/v1/timers", body), 413, "event_too_large")
    world.create("a", after_s=1, event={**event, "body": "x" * 60_000})


def test_a_key_sees_and_changes_timers_of_its_client_on_streams_that_it_emits_to(
    world: TimersWorld,
) -> None:
    world.caller.put("/v1/streams/secret", {})
    mine = caller_with("emit:alarms", "listen:*", client_name="other")
    theirs = world.create("theirs", after_s=60)
    own = world.create("own", mine, after_s=60)
    hidden = world.create("hidden", client="other", after_s=60, stream="secret")
    listed = [one["handle"] for one in mine.get("/v1/timers").json()["items"]]
    assert listed == ["own"]
    for timer in (theirs, hidden):
        path = f"/v1/timers/{timer['id']}"
        for answer in (mine.get(path), mine.patch(path, {"suspended": True}), mine.delete(path)):
            refused(answer, 404, "unknown_timer")
    body = {"stream": "secret", "handle": "x", "after_s": 1}
    refused(mine.post("/v1/timers", body), 403, "forbidden")
    refused(mine.post("/v1/timers", {**body, "stream": "system"}), 403, "forbidden")
    assert mine.delete(f"/v1/timers/{own['id']}").status_code == 204
    registration = world.register()  # of another client
    body = {"stream": "alarms", "handle": "x", "after_s": 1, "registration": registration}
    refused(mine.post("/v1/timers", body), 404, "unknown_registration")
    assert world.handles("?client=other") == ["hidden"]


def test_a_quota_bounds_the_timers_of_a_client(world: TimersWorld) -> None:
    sql(
        "INSERT INTO quotas (zone_id, client_id, kind, value)"
        " SELECT zone_id, id, 'timers', 1 FROM clients WHERE name = 'tester'"
    )
    world.create("a", at=world.at(1))
    body = {"stream": "alarms", "handle": "b", "after_s": 1}
    refused(world.caller.post("/v1/timers", body), 409, "limit_reached")
    assert world.fires_until(2) == [1]
    world.create("b", after_s=1)


def test_a_failed_transaction_fires_nothing_and_the_next_one_everything_once(
    world: TimersWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for handle in ("a", "b"):
        world.create(handle, at=world.at(1))
    world.clock.advance_s(1)
    sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE 'refused'; END $$"
    )
    sql("CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse()")
    with pytest.raises(psycopg.Error):
        world.fire()
    assert (events(), counted()) == ([], [2, 2])
    sql("DROP TRIGGER refuse ON events")
    assert (world.fire(), world.fire()) == (2, 0)
    assert ticks() == [("a", 1, 0), ("b", 1, 0)]


def test_two_processes_that_fire_at_once_append_each_event_once(world: TimersWorld) -> None:
    for number in range(20):
        world.create(f"n{number}", at=world.at(1))
    world.create("often", every_s=1, start=world.at(1))
    world.clock.advance_s(1)

    async def both() -> None:
        async with (
            await connect(database(), name="a") as one,
            await connect(database(), name="b") as other,
        ):
            await asyncio.gather(fire_due(one, world.clock), fire_due(other, world.clock))

    asyncio.run(both())
    assert len(ticks()) == len({one[0] for one in ticks()}) == 21
    assert counted() == [1, 1]


def test_a_pass_is_bounded_in_order_and_finds_what_is_due_by_an_index(world: TimersWorld) -> None:
    world.create("template", at=world.at(7200))
    most = limits.TIMERS_FIRED_AT_ONCE
    sql(
        "INSERT INTO timers"
        " (zone_id, client_id, stream_id, handle, at, next_at, due_at, created_at)"
        " SELECT zone_id, client_id, stream_id, 'n' || n, due.at, due.at, due.at, now()"
        " FROM timers, generate_series(1, %s) AS n,"
        " LATERAL (SELECT next_at - interval '2 hours' + n * interval '1 ms' AS at) AS due",
        most + 10,
    )
    sql("UPDATE timer_counts SET timers = timers + %s", most + 10)
    sql("ANALYZE timers")
    plan = "\n".join(
        row[0]
        for row in sql(
            "EXPLAIN SELECT id FROM timers WHERE due_at <= now() ORDER BY due_at, id LIMIT 1000"
        )
    )
    assert "timers_in_order" in plan, plan
    world.clock.advance_s(60)
    assert [world.fire(), world.fire(), world.fire()] == [most, 10, 0]
    assert [one[0] for one in ticks()] == [f"n{n}" for n in range(1, most + 11)]
    assert counted() == [1, 1]


def test_a_timer_that_is_changed_while_it_is_due_does_not_fire(
    world: TimersWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read as due, and suspended before it was claimed."""
    created = world.create("a", at=world.at(1))
    world.clock.advance_s(1)
    claim = firing._claim

    async def late(*args: Any) -> set[int]:
        sql("UPDATE timers SET suspended = true, due_at = NULL WHERE id = %s", created["id"])
        return await claim(*args)

    monkeypatch.setattr(firing, "_claim", late)
    assert world.fire() == 1
    assert (events(), counted()) == ([], [1, 1])
