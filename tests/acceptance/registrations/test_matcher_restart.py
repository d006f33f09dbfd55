"""SUN-10: the index built from stored registrations at start equals the incremental one."""

import itertools
from typing import Any

import psycopg
import pytest

from registrations.catalog import compiled, versions_of_barriers, versions_of_stream
from registrations.matching.counting import CountingMatcher
from registrations.matching.versions import StreamVersion
from tests.live import LiveHub, LiveZone
from tests.sink import Sink


def take(matcher: CountingMatcher, versions: list[StreamVersion]) -> None:
    for version in versions:
        if version.until is None:
            matcher.add(version.id, *version.specs)
        else:
            matcher.remove(version.id)


@pytest.mark.req("SUN-10")
async def test_the_index_built_from_postgresql_equals_the_incremental_one(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    zone.create_stream("cluster")
    endpoint = zone.endpoint(sink.url("/sun10"))["id"]

    def wanting(**attributes: Any) -> dict[str, Any]:
        return {
            "streams": ["cluster"],
            "domain": "cluster",
            "type": "state",
            "attributes": attributes,
            "endpoint": endpoint,
        }

    three = [wanting(nv1=1), wanting(nv1=1, nv2="2"), wanting(nv1=1, nv2="2", nv3=None)]
    made = zone.register(*three, wanting(), wanting(node="a"), wanting(**{"a.b": True}))
    paths = [f"/v1/registrations/{one['id']}" for one in made]
    for number, path in itertools.product(range(3), paths[:2]):
        changed = {"attributes": {"nv1": number, "nv4": "x"}}
        assert hub.call("PATCH", path, changed, key=zone.admin).status == 200
    assert hub.call("DELETE", paths[4], key=zone.admin).status == 204
    zone.register(*three)

    [(stream_id,)] = hub.sql(
        "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id WHERE z.name = %s", zone.name
    )
    barriers = hub.sql("SELECT id FROM barriers WHERE %s = ANY (streams) ORDER BY id", stream_id)
    grown, built = CountingMatcher(), CountingMatcher()
    async with await psycopg.AsyncConnection.connect(
        hub.database_url, autocommit=True
    ) as connection:
        for (barrier,) in barriers:
            changed = await versions_of_barriers(connection, [barrier], stream_id)
            take(grown, await compiled(changed))
        take(built, await compiled(await versions_of_stream(connection, stream_id, 0)))
    assert len(built) == 8
    assert sorted(built.totals().values()) == [0, 1, 1, 2, 2, 2, 3, 3]
    assert built.dump() == grown.dump()
    assert built.totals() == grown.totals()
