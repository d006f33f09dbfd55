"""The catalog: versions of a stream with their bounds, as matchers load and follow them."""

from collections.abc import AsyncIterator, Awaitable
from typing import Any

import psycopg
import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations import catalog
from registrations.endpoints import statements
from registrations.matching.spec import Spec
from registrations.stream_registrations import StreamRegistrations, registrations_in_stream
from tests.live import LiveHub, LiveZone

EVENT = {"domain": "shop", "type": "order.placed"}
URL = "https://a.example/hook"
NEW = {"streams": ["orders"], "domain": "shop", "attributes": {"n": 1}, "callback": URL}
Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def connection(hub: LiveHub) -> AsyncIterator[Connection]:
    found = await psycopg.AsyncConnection.connect(hub.database_url, autocommit=True)
    async with found:
        yield found


async def versions(written: Awaitable[list[catalog.StoredVersion]]) -> list[catalog.StreamVersion]:
    return await catalog.compiled(await written)


async def written(
    connection: Connection, ids: list[int], stream: int
) -> list[catalog.StoredVersion]:
    return (await registrations_in_stream(connection, ids, [], stream, 0)).written


def call(zone: LiveZone, method: str, path: str, body: Any = None) -> Any:
    answer = zone.hub.call(method, path, body, key=zone.admin)
    assert answer.status in (200, 201, 204), answer
    return answer.json if answer.body else None


def register(zone: LiveZone, body: Any) -> Any:
    return call(zone, "POST", "/v1/registrations", body)


def stream_id(zone: LiveZone, name: str) -> int:
    [(found,)] = zone.hub.sql(
        "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.name = %s",
        *(zone.name, name),
    )
    return int(found)


def emit(zone: LiveZone, stream: str, count: int) -> None:
    assert zone.emit(stream, [EVENT] * count).status == 200


def last_barrier(zone: LiveZone) -> int:
    last = call(zone, "GET", "/v1/streams/system")["last"]
    found: int = call(zone, "GET", f"/v1/streams/system/events/{last}")["attributes"]["barrier"]
    return found


async def test_versions_have_the_bounds_of_the_stream(
    zone: LiveZone, connection: Connection
) -> None:
    for name in ("orders", "returns"):
        zone.create_stream(name)
    orders, returns = stream_id(zone, "orders"), stream_id(zone, "returns")
    emit(zone, "orders", 3)
    made = register(zone, {**NEW, "streams": ["returns", "orders"]})
    register(zone, {"streams": ["orders"]})  # without a callback: no forwarder's matter
    path = f"/v1/registrations/{made['id']}"
    emit(zone, "orders", 2)
    call(zone, "PATCH", path, {"streams": ["orders"], "attributes": None})
    changed_at = last_barrier(zone)
    emit(zone, "orders", 2)

    first, second = sorted(await versions(catalog.versions_of_stream(connection, orders, 0)))
    assert (first.registration, first.since, first.until) == (made["id"], 3, 5)
    assert first.specs == (Spec("shop", None, (("n", 1),)),)
    assert (second.since, second.until, second.specs) == (5, None, (Spec("shop"),))
    assert (first.endpoint_id, first.client) == (made["endpoint"], made["client"])
    assert [first.holds(sequence) for sequence in (3, 4, 5, 6)] == [False, True, True, False]
    assert await versions(catalog.versions_of_stream(connection, orders, 5)) == [second]
    assert (
        await versions(catalog.versions_of_stream(connection, returns, 0)) == []
    )  # it never held there
    changed = await versions(catalog.versions_of_barriers(connection, [changed_at], orders))
    assert sorted(changed) == [first, second]
    [there] = await versions(catalog.versions_of_barriers(connection, [changed_at], returns))
    assert (there.id, there.since, there.until) == (first.id, 0, 0)

    call(zone, "DELETE", path)
    ended = second._replace(until=7)
    assert await versions(catalog.versions_of_stream(connection, orders, 6)) == [ended]
    assert await versions(catalog.versions_of_stream(connection, orders, 7)) == []
    deleted_at = last_barrier(zone)
    assert await versions(catalog.versions_of_barriers(connection, [deleted_at], orders)) == [ended]


async def test_versions_of_registrations_need_no_callback(
    zone: LiveZone, connection: Connection
) -> None:
    zone.create_stream("orders")
    one, two, other = register(zone, [{"streams": ["orders"]}, NEW, NEW])["items"]
    orders = stream_id(zone, "orders")
    ids = [two["id"], one["id"], 999_999_999]
    found = sorted(await versions(written(connection, ids, orders)))
    assert [version.registration for version in found] == [one["id"], two["id"]]
    assert found[0].endpoint_id is None
    assert found[0].specs == (Spec(),)
    [(client_id,)] = zone.hub.sql("SELECT client_id FROM registrations WHERE id = %s", other["id"])
    live = await catalog.live_registrations(connection, client_id, ids)
    assert live == [(one["id"], (orders,)), (two["id"], (orders,))]
    assert await catalog.live_registrations(connection, client_id + 1, ids) == []
    call(zone, "DELETE", f"/v1/registrations/{one['id']}")
    assert len(await catalog.live_registrations(connection, client_id, ids)) == 1


async def test_many_versions_are_read_like_few_and_each_statement_is_planned_once(
    zone: LiveZone, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone.create_stream("orders")
    call(zone, "POST", "/v1/sessions", {"name": "s", "kind": "consumer"})
    named = register(zone, NEW)["id"]
    owned = [register(zone, {"streams": ["orders"], "session": "s"})["id"] for _ in range(2)]
    [(session,)] = zone.hub.sql(
        "SELECT s.id FROM sessions s JOIN registration_groups g ON g.session_id = s.id"
        " JOIN registration_versions v ON v.group_id = g.id WHERE v.registration_id = %s",
        owned[0],
    )
    owner = catalog.SessionOwner(session)

    async def read() -> StreamRegistrations:
        orders = stream_id(zone, "orders")
        found = await registrations_in_stream(connection, [named], [owner], orders, 0)
        return found._replace(written=sorted(found.written))

    few = await read()
    assert [one.registration for one in few.written] == [named, *owned]
    assert {id: sorted(ids) for id, ids in few.owned.items()} == {owner: owned}
    plans = await connection.execute(
        "SELECT DISTINCT generic_plans, custom_plans, current_setting('plan_cache_mode')"
        " FROM pg_prepared_statements WHERE statement LIKE '%registration_versions%'"
    )
    assert await plans.fetchall() == [(1, 0, "auto")]
    monkeypatch.setattr(limits, "VERSIONS_READ_AT_ONCE_MAX", 2)
    assert await read() == few


async def test_versions_of_system_match_events_of_their_zone_and_of_the_hub(
    zone: LiveZone, connection: Connection
) -> None:
    made = register(zone, {"streams": ["system"], "type": "key.revoked"})
    [version] = await versions(written(connection, [made["id"]], 1))
    assert version.specs == (Spec(None, "key.revoked"),)
    of: list[dict[str, str]] = [{"zone": zone.name}, {"zone": "another"}, {}]  # {}: the hub's
    visible = [
        version.is_visible(Event("eventhub", "key.revoked", each), lambda _: frozenset())
        for each in of
    ]
    assert visible == [True, False, True]
    assert version.since == made["from"]["system"]["sequence"]


async def test_streams_with_callbacks_have_the_lowest_position(
    zone: LiveZone, connection: Connection
) -> None:
    for name in ("orders", "quiet"):
        zone.create_stream(name)
    register(zone, {"streams": ["quiet", "orders"]})
    emit(zone, "orders", 4)
    first = register(zone, NEW)
    emit(zone, "orders", 4)
    register(zone, NEW)
    call(zone, "DELETE", f"/v1/registrations/{first['id']}")
    orders = stream_id(zone, "orders")
    found = {one.stream_id: one for one in await catalog.streams_with_callbacks(connection)}
    assert found[orders] == (orders, first["from"]["orders"]["segment"], 4)
    assert stream_id(zone, "quiet") not in found
    known = list(found)
    assert await catalog.streams_with_callbacks(connection, known) == []


async def test_a_disabled_endpoint_is_announced_once(
    zone: LiveZone, connection: Connection
) -> None:
    zone.create_stream("orders")
    endpoint = register(zone, NEW)["endpoint"]
    assert await statements.disable(connection, endpoint, "gone")
    last = call(zone, "GET", "/v1/streams/system")["last"]
    changed, event = (
        call(zone, "GET", f"/v1/streams/system/events/{number}") for number in (last - 1, last)
    )
    expected = {"zone": zone.name, "client": "tester", "endpoint": endpoint, "reason": "gone"}
    assert changed["type"] == "endpoint.changed"
    fields = {"ordered": False, "order_by": "", "format": "native", "enabled": False}
    assert changed["attributes"] == {**expected, **fields, "by": {"kind": "hub"}}
    assert event["type"] == "endpoint.disabled"
    assert event["attributes"] == {**event["attributes"], **expected}
    assert not await statements.disable(connection, endpoint, "gone")
    shown = call(zone, "GET", f"/v1/endpoints/{endpoint}")
    assert (shown["enabled"], shown["reason"]) == (False, "gone")
    assert call(zone, "GET", "/v1/streams/system")["last"] == last
    shown = call(zone, "PATCH", f"/v1/endpoints/{endpoint}", {"enabled": True})
    assert (shown["enabled"], shown["reason"]) == (True, None)


async def test_five_thousand_versions_share_their_filters_and_end_with_their_client(
    hub: LiveHub, zone: LiveZone, connection: Connection
) -> None:
    zone.create_stream("orders")
    orders = stream_id(zone, "orders")
    key = zone.key("listen:*", client="large")
    for start in range(0, 5_000, 1_000):
        items = [{**NEW, "attributes": {"n": n % 100}} for n in range(start, start + 1_000)]
        assert hub.call("POST", "/v1/registrations", items, key=key).status == 201
    found = await versions(catalog.versions_of_stream(connection, orders, 0))
    assert len({version.id for version in found}) == 5_000
    assert len({id(version.specs) for version in found}) == 100
    assert call(zone, "DELETE", "/v1/clients/large") is None
    assert await versions(catalog.versions_of_stream(connection, orders, 0)) == []
