"""Requests whose cost must not depend on the number of registrations; the counts of groups."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from registrations import statements
from registrations.groups.services import streams_ever
from registrations.statements import RegistrationQuery
from tests.acceptance.registrations.test_bulk import sent
from tests.live import LiveHub, LiveZone

MANY = 3_000
GROUPS = "/v1/registration-groups"
Connection = psycopg.Connection[Any]


@pytest.fixture
def connection(hub: LiveHub) -> Iterator[Connection]:
    with psycopg.connect(hub.database_url) as found:
        yield found
        found.rollback()


def more_like(connection: Connection, registration: int) -> None:
    """Insert many copies of a registration in this transaction."""
    columns = "streams, language, filter, group_id, from_barrier"
    connection.execute(
        "WITH made AS (INSERT INTO registrations (zone_id, client_id)"
        "  SELECT zone_id, client_id FROM registrations, generate_series(1, %s)"
        "   WHERE id = %s RETURNING id)"
        f" INSERT INTO registration_versions (registration_id, number, {columns})"
        f" SELECT m.id, 1, {columns} FROM made m, registration_versions v"
        "  WHERE v.registration_id = %s",
        (MANY, registration, registration),
    )
    connection.execute("ANALYZE registrations, registration_versions")


def looked_at(connection: Connection, act: Callable[[], Any]) -> int:
    """Return how many versions of registrations the database read for the call."""
    count = (
        "SELECT COALESCE(sum(seq_tup_read + COALESCE(idx_tup_fetch, 0)), 0)::bigint"
        " FROM pg_stat_xact_user_tables WHERE relname = 'registration_versions'"
    )
    [[before]] = connection.execute(count).fetchall()
    act()
    [[after]] = connection.execute(count).fetchall()
    return int(after - before)


def test_a_group_is_locked_with_its_streams_and_none_of_its_registrations(
    hub: LiveHub, zone: LiveZone, connection: Connection
) -> None:
    """Suspending a group of 100,000 registrations held its lock for 0.4 s."""
    zone.create_stream("orders")
    group = hub.call("POST", GROUPS, {"name": "all"}, key=zone.admin).json["id"]
    [one] = zone.register({"streams": ["orders"], "group": "all"})
    more_like(connection, one["id"])

    def lock() -> None:
        query, values = streams_ever(group).values_list("stream__name").query.sql_with_params()
        assert connection.execute(query, values).fetchall() == [("orders",)]

    assert looked_at(connection, lock) == 0


def test_a_list_for_few_streams_reads_only_their_registrations(
    hub: LiveHub, zone: LiveZone, connection: Connection
) -> None:
    """All registrations of the zone were read: 0.5 s for 100,000."""
    zone.create_stream("orders")
    zone.create_stream("few")
    [other] = zone.register({"streams": ["orders"]})
    [few, _] = zone.register({"streams": ["few"]}, {"streams": ["few", "orders"]})
    more_like(connection, other["id"])
    [[zone_id]] = hub.sql("SELECT id FROM zones WHERE name = %s", zone.name)

    def search() -> None:
        search = RegistrationQuery(zone_id, patterns=["few", r"no\_%"], system=False, items_max=100)
        assert [found.id for found in statements.search(connection, search)] == [few["id"]]

    assert looked_at(connection, search) < MANY / 10


def test_few_streams_are_few(
    zone: LiveZone, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventhub.base.limits.STREAMS_LOOKED_UP_MAX", 2)
    for number in range(3):
        zone.create_stream(f"few{number}")
    [[zone_id]] = zone.hub.sql("SELECT id FROM zones WHERE name = %s", zone.name)
    for patterns, system, few in (
        (None, True, None),
        (["few%"], False, None),
        (["few1"], False, 1),
        (["no"], True, 1),
        (["no"], False, 0),
    ):
        search = RegistrationQuery(zone_id, patterns=patterns, system=system)
        found = statements.few_streams(connection, search)
        assert (None if found is None else len(found)) == few, patterns


def test_groups_count_their_registrations_after_every_kind_of_change(
    hub: LiveHub, zone: LiveZone
) -> None:
    for name in ("a", "b"):
        zone.create_stream(name)
    ids = {}
    for name in ("one", "two"):
        made = hub.call("POST", GROUPS, {"name": name}, key=zone.admin).json
        ids[name] = made["id"]
    truth = (
        "SELECT g.id, g.registrations, (SELECT count(*) FROM registration_versions v"
        "  WHERE v.group_id = g.id AND v.until_barrier IS NULL),"
        " (SELECT array_agg((s.stream_id, s.registrations) ORDER BY s.stream_id)::text"
        "    FROM group_streams s WHERE s.group_id = g.id),"
        " (SELECT array_agg((ever.id, ever.live) ORDER BY ever.id)::text FROM"
        "   (SELECT s.id, count(*) FILTER (WHERE v.until_barrier IS NULL) AS live"
        "      FROM registration_versions v, unnest(v.streams) AS s (id)"
        "     WHERE v.group_id = g.id GROUP BY s.id) AS ever)"
        " FROM registration_groups g WHERE g.id = ANY (%s) ORDER BY g.id"
    )

    def right(one: int, two: int) -> None:
        found = hub.sql(truth, list(ids.values()))
        assert [(row[1], row[3]) for row in found] == [(row[2], row[4]) for row in found]
        assert [row[1] for row in found] == [one, two]

    def patch(registration: dict[str, Any], **fields: Any) -> None:
        path = f"/v1/registrations/{registration['id']}"
        assert hub.call("PATCH", path, fields, key=zone.admin).status == 200

    in_one = {"streams": ["a"], "group": "one"}
    registrations = zone.register(in_one, {**in_one, "streams": ["a", "b"]}, {"streams": ["a"]})
    right(2, 0)
    patch(registrations[0], streams=["b"])
    patch(registrations[1], group="two")
    patch(registrations[2], group="two", suspended=True)
    right(1, 2)
    hub.call("DELETE", f"/v1/registrations/{registrations[1]['id']}", key=zone.admin)
    patch(registrations[0], group=None)
    right(0, 1)
    line = {"op": "create", "streams": ["a", "b"], "group": "one"}
    sent(zone, [{**line, "key": str(number)} for number in range(5)])
    sent(zone, [{"op": "end", "key": "0"}, {"op": "change", "key": "1", "group": "two"}])
    right(3, 2)
    path = f"{GROUPS}/{ids['one']}"
    assert hub.call("PATCH", path, {"suspended": True}, key=zone.admin).json["registrations"] == 3
    hub.call("DELETE", path, key=zone.admin).refused(409, "group_in_use")
