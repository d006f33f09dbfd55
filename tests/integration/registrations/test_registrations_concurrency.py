"""Concurrent changes of registrations, and changes during traffic: every change has one exact
position in each stream, and there is no deadlock.

Checked by snapshots of the database: a snapshot with an event above a barrier has the change, too.
"""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.live import Answer, LiveHub, LiveZone

EVENT = {"domain": "shop", "type": "order.placed"}
NEW = {"streams": ["orders"], "domain": "shop"}
_SNAPSHOT = """
    SELECT (SELECT sequence FROM heads WHERE stream_id = %(stream)s),
           COALESCE(array_agg(id) FILTER (WHERE until_barrier IS NULL), '{}'),
           COALESCE(array_agg(id) FILTER (WHERE until_barrier IS NOT NULL), '{}')
      FROM registration_versions WHERE streams @> ARRAY[%(stream)s]::bigint[]
"""
_BOUNDS = """
    SELECT v.id, f.sequences[array_position(f.streams, s.id)],
           u.sequences[array_position(u.streams, s.id)]
      FROM streams s JOIN registration_versions v ON v.streams @> ARRAY[s.id]
      JOIN barriers f ON f.id = v.from_barrier
      LEFT JOIN barriers u ON u.id = v.until_barrier
     WHERE s.id = %s
"""


class Seen(NamedTuple):
    """One snapshot: a stream's head, and the versions that began or ended."""

    head: int
    open: frozenset[int]
    ended: frozenset[int]


@contextmanager
def repeating(*jobs: Callable[[], Any]) -> Iterator[None]:
    """Repeat each job in its own thread until the block ends; their errors are
    raised then.
    """
    stop = threading.Event()

    def repeat(job: Callable[[], Any]) -> None:
        while not stop.is_set():
            job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [pool.submit(repeat, job) for job in jobs]
        try:
            yield
        finally:
            stop.set()
        for one in running:
            one.result()


def stream_id(zone: LiveZone, name: str) -> int:
    [(found,)] = zone.hub.sql(
        "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.name = %s",
        zone.name,
        name,
    )
    return int(found)


def call(zone: LiveZone, method: str, path: str, body: Any = None, web: int = 0) -> Answer:
    url = zone.hub.web[web].url
    return zone.hub.call(method, path, body, key=zone.admin, url=url)


def register(zone: LiveZone, body: Any, web: int = 0) -> Any:
    answer = call(zone, "POST", "/v1/registrations", body, web)
    assert answer.status == 201, answer
    return answer.json


def emitting(zone: LiveZone, stream: str, web: int = 0) -> Callable[[], None]:
    def emit() -> None:
        answer = zone.emit(stream, [EVENT] * 10, url=zone.hub.web[web].url)
        assert answer.status == 200, answer

    return emit


def test_a_snapshot_with_an_event_above_a_barrier_has_the_change(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    stream = stream_id(zone, "orders")
    seen: list[Seen] = []
    observer = psycopg.connect(hub.database_url, autocommit=True)

    def observe() -> None:
        row = observer.execute(_SNAPSHOT, {"stream": stream}).fetchone()
        assert row is not None
        seen.append(Seen(row[0], frozenset(row[1]), frozenset(row[2])))

    with observer, repeating(emitting(zone, "orders"), emitting(zone, "orders", 1), observe):
        for number in range(16):
            registration = register(zone, NEW, number % 2)["id"]
            path = f"/v1/registrations/{registration}"
            assert call(zone, "PATCH", path, {"type": f"t{number}"}, 1).status == 200
            assert number % 3 or call(zone, "DELETE", path).status == 204
    bounds = hub.sql(_BOUNDS, stream)
    assert len(bounds) == 32
    heads = {one.head for one in seen}
    assert len(heads) > 16, "nothing happened meanwhile"
    assert len({since for _, since, _ in bounds}) > 8
    for one in seen:
        for version, since, until in bounds:
            if version not in one.open | one.ended:
                assert one.head <= since, (one.head, version)
            elif version in one.open and until is not None:
                assert one.head <= until, (one.head, version)


def test_an_answer_has_the_position_after_which_events_match(zone: LiveZone) -> None:
    zone.create_stream("orders")
    replies: list[int] = []

    def emit() -> None:
        answer = zone.emit("orders", EVENT)
        replies.append(answer.json["ranges"][-1]["last"] if answer.status == 200 else -1)

    with repeating(emit):
        for _ in range(20):
            acknowledged = replies[-1] if replies else 0
            since = register(zone, NEW)["from"]["orders"]["sequence"]
            later = zone.emit("orders", EVENT, url=zone.hub.web[1].url)
            assert acknowledged <= since < later.json["ranges"][0]["first"]
    assert -1 not in replies


def test_concurrent_changes_of_one_registration_form_a_chain(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.create_stream("returns")
    registration = register(zone, NEW)["id"]
    path = f"/v1/registrations/{registration}"

    def change(number: int) -> int:
        streams = [["orders"], ["returns"], ["returns", "orders"]][number % 3]
        body = {"streams": streams, "attributes": {"n": number}}
        answer = call(zone, "PATCH", path, body, number % 2)
        assert answer.status == 200, answer
        version: int = answer.json["version"]
        return version

    with repeating(emitting(zone, "orders"), emitting(zone, "returns")):
        with ThreadPoolExecutor(8) as pool:
            versions = list(pool.map(change, range(40)))
        with ThreadPoolExecutor(4) as pool:
            ends = list(pool.map(lambda web: call(zone, "DELETE", path, web=web % 2), range(4)))
    assert sorted(versions) == list(range(2, 42))
    assert sorted(answer.status for answer in ends) == [204, 404, 404, 404]
    rows = hub.sql(
        "SELECT number, from_barrier, until_barrier FROM registration_versions"
        " WHERE registration_id = %s ORDER BY number",
        registration,
    )
    assert [row[0] for row in rows] == list(range(1, 42))
    assert [row[2] for row in rows[:-1]] == [row[1] for row in rows[1:]]
    assert rows[-1][2] is not None
    for stream in (stream_id(zone, "orders"), stream_id(zone, "returns")):
        places = [
            place
            for [place] in hub.sql(
                "SELECT b.sequences[array_position(b.streams, %s)] FROM registration_versions v"
                " JOIN barriers b ON b.id = v.from_barrier WHERE v.registration_id = %s"
                " AND array_position(b.streams, %s) IS NOT NULL ORDER BY v.number",
                *(stream, registration, stream),
            )
        ]
        assert places == sorted(places)
        assert places[-1] > places[0]


def test_concurrent_requests_of_all_kinds_do_not_deadlock_and_are_consistent(
    hub: LiveHub, zone: LiveZone
) -> None:
    names = ["orders", "returns", "stock", "bills"]
    for name in names:
        zone.create_stream(name)
    endpoint = call(zone, "POST", "/v1/endpoints", {"url": "https://a.example/"}).json["id"]
    registrations = [item["id"] for item in register(zone, [NEW] * 20)["items"]]

    def act(number: int) -> int:
        dice = random.Random(number)
        web, registration = dice.randrange(2), dice.choice(registrations)
        streams = dice.sample(names, dice.randint(1, 4))
        body: Any = {"streams": streams, "attributes": {"n": number}}
        match dice.randrange(8):
            case 0 | 1:
                kind = dice.choice(({"endpoint": endpoint}, {"callback": "https://b.example/"}))
                registrations.append(register(zone, {**body, **kind}, web)["id"])
                return 201
            case 2:
                registrations.extend(it["id"] for it in register(zone, [body] * 20, web)["items"])
                return 201
            case 3 | 4:
                return call(zone, "PATCH", f"/v1/registrations/{registration}", body, web).status
            case 5:
                return call(zone, "DELETE", f"/v1/registrations/{registration}", web=web).status
            case 6:
                return call(zone, "PUT", f"/v1/streams/new-{number}", {}, web).status
        change = {"ordered": dice.random() < 0.5}
        return call(zone, "PATCH", f"/v1/endpoints/{endpoint}", change, web).status

    emitters = [emitting(zone, name, at % 2) for at, name in enumerate(names)]
    with repeating(*emitters), ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(act, range(100)))
    assert set(statuses) <= {200, 201, 204, 404}, statuses
    assert {200, 201, 204} <= set(statuses)
    [(live, counted)] = hub.sql(
        "SELECT (SELECT count(*) FROM registrations r WHERE r.client_id = c.id"
        " AND r.deleted_at IS NULL), o.registrations FROM registration_owners o JOIN clients c"
        " ON c.id = o.client_id JOIN zones z ON z.id = c.zone_id WHERE z.name = %s",
        zone.name,
    )
    assert live == counted > 0
    assert hub.sql(
        "SELECT count(*) FROM registration_versions v JOIN barriers b"
        " ON b.id IN (v.from_barrier, v.until_barrier) JOIN registrations r"
        " ON r.id = v.registration_id JOIN clients c"
        " ON c.id = r.client_id JOIN zones z ON z.id = c.zone_id"
        " WHERE z.name = %s AND NOT b.streams @> v.streams",
        zone.name,
    ) == [(0,)]
    same = "https://b.example/"
    assert hub.sql(
        "SELECT count(*) FROM endpoints e JOIN zones z ON z.id = e.zone_id"
        " WHERE z.name = %s AND e.url = %s",
        *(zone.name, same),
    ) == [(1,)]


@pytest.mark.parametrize("web", [0, 1])
def test_a_client_that_is_deleted_during_its_own_changes_leaves_nothing(
    hub: LiveHub, zone: LiveZone, web: int
) -> None:
    zone.create_stream("orders")
    key = zone.key("listen:*", client="leaving")
    statuses: list[int] = []

    def change() -> None:
        url = hub.web[web].url
        body = {**NEW, "attributes": {"never": 1}, "callback": "https://a.example/"}
        answer = hub.call("POST", "/v1/registrations", body, key=key, url=url)
        statuses.append(answer.status)
        if answer.status == 201:
            path = f"/v1/registrations/{answer.json['id']}"
            statuses.append(hub.call("PATCH", path, {"type": "x"}, key=key, url=url).status)

    with repeating(change, change, emitting(zone, "orders")):
        while statuses.count(200) < 10:
            assert set(statuses) <= {200, 201}, statuses
        assert call(zone, "DELETE", "/v1/clients/leaving").status == 204
        after = len(statuses)
        while len(statuses) < after + 10:
            assert set(statuses) <= {200, 201, 401, 404}, statuses
    assert 401 in statuses
    left = hub.sql(
        "SELECT count(*) FROM registration_versions v JOIN registrations r"
        " ON r.id = v.registration_id JOIN clients c ON c.id = r.client_id"
        " WHERE c.name = 'leaving' AND (r.deleted_at IS NULL OR v.until_barrier IS NULL)"
    )
    assert left == [(0,)]
    assert hub.sql(
        "SELECT count(*) FROM endpoints e JOIN clients c ON c.id = e.client_id"
        " WHERE c.name = 'leaving' AND e.deleted_at IS NULL"
    ) == [(0,)]
