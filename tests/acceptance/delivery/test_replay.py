"""Replay runs: events of the log, and failed deliveries, sent to an endpoint by a worker."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg

from tests.acceptance.delivery.test_deliveries import dead_letter, finished
from tests.acceptance.eventhub.eventlog.test_retention import announced
from tests.databases import WAITING
from tests.live import Answer, LiveZone
from tests.sink import Called, Sink


class World:
    """A zone with the stream `orders`, and an endpoint of its client that no registration names."""

    def __init__(self, zone: LiveZone, sink: Sink, **endpoint: Any) -> None:
        self.zone, self.sink = zone, sink
        self.path = f"/{zone.name}/replayed"
        zone.create_stream("orders")
        self.endpoint = zone.endpoint(sink.url(self.path), **endpoint)["id"]

    def emit(self, numbers: range, stream: str = "orders") -> None:
        events = [
            {"domain": "shop", "type": "order.placed", "attributes": {"n": n, "m": 0}}
            for n in numbers
        ]
        assert self.zone.emit(stream, events).status == 200

    def ask(self, path: str, body: Any = None, *, key: str = "") -> Answer:
        return self.zone.hub.call("POST", path, body, key=key or self.zone.admin)

    def preview(self, **body: Any) -> dict[str, Any]:
        answer = self.ask("/v1/replays/preview", {"endpoint": self.endpoint, **body})
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.json
        return found

    def start(self, **body: Any) -> int:
        answer = self.ask("/v1/replays", {"endpoint": self.endpoint, "rate": 5_000, **body})
        assert answer.status == 202, answer
        return int(answer.json["id"])

    def run(self, id: int) -> dict[str, Any]:
        answer = self.zone.hub.call("GET", f"/v1/replays/{id}", key=self.zone.admin)
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.json
        return found

    def until(self, id: int, state: str = "completed") -> dict[str, Any]:
        """Return a run once it is in a state."""
        end = time.monotonic() + 60
        while (run := self.run(id))["state"] != state:
            assert time.monotonic() < end, run
            time.sleep(0.05)
        return run

    def replay(self, **body: Any) -> dict[str, Any]:
        return self.until(self.start(**body))

    def sent(self, count: int) -> list[Called]:
        return self.sink.wait(count, self.path)


def numbers(called: list[Called]) -> list[int]:
    return [each.json["event"]["attributes"]["n"] for each in called]


def test_a_run_sends_what_its_preview_shows_and_nothing_twice(zone: LiveZone, sink: Sink) -> None:
    world = World(zone, sink)
    world.emit(range(20))
    asked = {"streams": ["orders"], "language": "predicate", "filter": "(< n 8)"}
    before = world.preview(**asked)
    assert before.items() >= {
        "exact": True, "total": 20, "examined": 20, "matched": 8, "deliveries": 8, "skipped": 0,
        "missing": 0, "duration_s": 0.08,
    }.items()  # fmt: skip
    assert [one["sequence"] for one in (*before["first"], *before["last"])] == [1, 2, 3, 6, 7, 8]
    run = world.replay(**asked)
    shared = ("examined", "matched", "skipped", "missing", "total")
    assert {name: run[name] for name in shared} == {name: before[name] for name in shared}
    assert run["written"] == before["deliveries"]
    called = world.sent(8)
    assert sorted(numbers(called)) == list(range(8))
    assert {str(each.json["registrations"]) for each in called} == {"[]"}
    finished(zone.hub, zone.admin, world.endpoint, 8)

    again = world.preview(**asked)
    assert (again["deliveries"], again["skipped"]) == (0, 8)
    run = world.replay(**asked)
    assert (run["written"], run["skipped"]) == (0, 8)
    assert len(world.sent(8)) == 8

    assert world.replay(**asked, force=True)["written"] == 8
    both = world.sent(16)
    assert sorted(each.id for each in both[8:]) == sorted(each.id for each in both[:8])
    finished(zone.hub, zone.admin, world.endpoint, 8)
    assert world.replay(**asked, force=True, new_id=True)["written"] == 8
    assert {each.id for each in world.sent(24)[16:]} == {f"{each.id}_2" for each in both[:8]}


def test_a_range_a_limit_and_several_streams(zone: LiveZone, sink: Sink) -> None:
    world = World(zone, sink, ordered=True)
    zone.create_stream("pay")
    world.emit(range(10))
    world.emit(range(100, 110), "pay")
    page = zone.hub.call("GET", "/v1/streams/orders/segments", key=zone.admin).json
    segment = page["items"][0]["uuid"]
    run = world.replay(streams=["orders"], **{"from": f"{segment}:2", "to": f"{segment}:6"})
    assert (run["total"], run["written"]) == (4, 4)
    assert numbers(world.sent(4)) == [2, 3, 4, 5]
    run = world.replay(streams=["orders", "pay"], limit=7)
    assert (run["written"], run["skipped"], run["state"]) == (7, 4, "completed")
    assert sorted(numbers(world.sent(11))[4:]) == [0, 1, 6, 7, 8, 9, 100]
    times = {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"}
    assert world.preview(streams=["orders"], **times)["total"] == 0
    cursor = {"endpoint": world.endpoint, "streams": ["orders", "pay"], "from": f"{segment}:2"}
    world.ask("/v1/replays", cursor).refused(400, "invalid_field")


def test_yesterdays_version_of_a_registration_selects(zone: LiveZone, sink: Sink) -> None:
    world = World(zone, sink)
    [made] = zone.register(
        {"streams": ["orders"], "language": "predicate", "filter": "(< n 3)", "report": ["n"]}
    )
    id = made["id"]
    changed = {"language": "predicate", "filter": "(> n 7)"}
    path = f"/v1/registrations/{id}"
    assert zone.hub.call("PATCH", path, changed, key=zone.admin).status == 200
    world.emit(range(10))
    run = world.replay(registration=id, version=1)
    assert run["selection"]["filter"] == "(< n 3)" and run["selection"]["version"] == 1
    called = world.sent(3)
    assert sorted(numbers(called)) == [0, 1, 2]
    assert called[0].json["registrations"] == [id]
    assert called[0].json["event"]["attributes"].keys() == {"n"}, "its report counts"
    assert world.replay(registration=id)["written"] == 2
    assert sorted(numbers(world.sent(5))[3:]) == [8, 9]


def test_an_ordered_endpoint_receives_the_events_in_order(zone: LiveZone, sink: Sink) -> None:
    world = World(zone, sink, ordered=True, retry_schedule=[1])
    tried: set[int] = set()

    def flaky(called: Called) -> tuple[int, dict[str, str]]:
        n = called.json["sequence"]
        if n % 7 or n in tried:
            return 204, {}
        tried.add(n)
        return 503, {}

    world.emit(range(60))
    zone.register({"streams": ["orders"], "endpoint": world.endpoint})
    sink.answer = flaky
    assert world.replay(streams=["orders"])["written"] == 60
    world.emit(range(60, 70))
    finished(zone.hub, zone.admin, world.endpoint, 70)
    answered = dict.fromkeys(numbers(world.sent(70)))
    assert list(answered) == list(range(70))


def test_dead_letters_are_grouped_previewed_and_recovered_by_cause(
    zone: LiveZone, sink: Sink
) -> None:
    world = World(zone, sink)
    zone.register({"streams": ["orders"], "endpoint": world.endpoint})
    world.emit(range(12))
    finished(zone.hub, zone.admin, world.endpoint, 12)
    dead_letter(zone.hub, world.endpoint, list(range(1, 11)))
    set_cause = (
        "UPDATE deliveries SET last_outcome = %s, last_status = %s"
        " WHERE endpoint_id = %s AND sequence = ANY (%s)"
    )
    zone.hub.sql(set_cause, "status", 500, world.endpoint, list(range(1, 8)))
    zone.hub.sql(set_cause, "timeout", None, world.endpoint, [8, 9, 10])

    def groups(query: str = "") -> list[dict[str, Any]]:
        answer = zone.hub.call("GET", f"/v1/dead-letters{query}", key=zone.admin)
        assert answer.status == 200, answer
        items: list[dict[str, Any]] = answer.json["items"]
        return items

    found = groups()
    assert [(one["outcome"], one["status"], one["deliveries"]) for one in found] == [
        ("status", 500, 7),
        ("timeout", None, 3),
    ]
    assert {one["client"] for one in found} == {"tester"}
    sample = zone.hub.call("GET", f"/v1/deliveries/{found[0]['samples'][0]}", key=zone.admin)
    assert sample.json["sequence"] == 7
    first = zone.hub.call("GET", "/v1/dead-letters?limit=1", key=zone.admin).json
    assert [one["deliveries"] for one in first["items"]] == [3], "the newest ones"
    rest = f"?limit=1&after={first['next']}"
    assert [one["deliveries"] for one in groups(rest)] == [7]

    path = f"/v1/endpoints/{world.endpoint}/recover"
    cause = {"outcome": "status", "status": 500}
    shown = world.ask(f"{path}/preview", cause).json
    assert (shown["exact"], shown["deliveries"]) == (True, 7)
    started = world.ask(path, {**cause, "rate": 1_000})
    assert started.status == 202, started
    run = world.until(started.json["id"])
    assert (run["source"], run["written"]) == ("deliveries", 7)
    assert {each.id for each in world.sent(19)[12:]} <= {each.id for each in world.sent(12)[:12]}
    finished(zone.hub, zone.admin, world.endpoint, 9)
    assert [one["deliveries"] for one in groups()] == [3]
    for type in ("replay.started", "replay.completed"):
        [event] = announced(zone, type)
        assert event["replay"] == run["id"]
    assert event["written"] == 7


def test_a_run_is_paused_resumed_and_cancelled(zone: LiveZone, sink: Sink) -> None:
    world = World(zone, sink)
    world.emit(range(50))
    id = world.start(streams=["orders"], rate=2)
    world.sent(2)
    assert world.ask(f"/v1/replays/{id}/resume").refused(409, "replay_state")["state"] == "running"
    assert world.ask(f"/v1/replays/{id}/pause", {}).json["state"] == "paused"
    paused = world.run(id)
    assert 2 <= paused["written"] < 50
    world.ask(f"/v1/replays/{id}/pause", {}).refused(409, "replay_state")
    assert world.run(id)["written"] == paused["written"]
    assert world.ask(f"/v1/replays/{id}/resume", {}).json["state"] == "running"
    world.sent(paused["written"] + 1)
    cancelled = world.ask(f"/v1/replays/{id}/cancel", {}).json
    assert cancelled["state"] == "cancelled" and cancelled["ended_at"]
    world.ask(f"/v1/replays/{id}/resume", {}).refused(409, "replay_state")
    types = ("started", "paused", "resumed", "cancelled")
    assert [len(announced(zone, f"replay.{type}")) for type in types] == [1, 1, 1, 1]
    listed = zone.hub.call("GET", "/v1/replays?state=cancelled", key=zone.admin).json["items"]
    assert [one["id"] for one in listed] == [id]


def test_a_run_waits_for_a_disabled_endpoint(zone: LiveZone, sink: Sink) -> None:
    world = World(zone, sink)
    world.emit(range(5))
    path = f"/v1/endpoints/{world.endpoint}"
    assert zone.hub.call("PATCH", path, {"enabled": False}, key=zone.admin).status == 200
    id = world.start(streams=["orders"])
    end = time.monotonic() + 60
    while world.run(id)["waits_for"] != "endpoint":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert zone.hub.call("PATCH", path, {"enabled": True}, key=zone.admin).status == 200
    assert world.until(id)["written"] == 5
    world.sent(5)


def test_only_the_owners_streams_and_registrations_are_replayed(zone: LiveZone, sink: Sink) -> None:
    world = World(zone, sink)
    zone.create_stream("pay")
    other = zone.key("listen:*", client="other")
    narrow = zone.key("listen:orders", client="narrow")
    theirs = zone.endpoint(sink.url("/x"), key=narrow)["id"]
    [made] = zone.register({"streams": ["orders"]})
    body = {"endpoint": world.endpoint, "streams": ["orders"]}
    for path in ("/v1/replays", "/v1/replays/preview"):
        world.ask(path, body, key=other).refused(404, "unknown_endpoint")
        pay = {"endpoint": theirs, "streams": ["pay"]}
        world.ask(path, pay, key=narrow).refused(403, "forbidden")
        foreign = {"endpoint": theirs, "registration": made["id"]}
        world.ask(path, foreign, key=zone.admin).refused(404, "unknown_registration")
        world.ask(path, {"endpoint": theirs}, key=narrow).refused(400, "missing_field")
    id = world.start(streams=["orders"])
    zone.hub.call("GET", f"/v1/replays/{id}", key=other).refused(404, "unknown_replay")
    world.ask(f"/v1/replays/{id}/cancel", {}, key=other).refused(404, "unknown_replay")
    assert zone.hub.call("GET", "/v1/replays", key=other).json["items"] == []


def test_hidden_events_are_not_replayed(zone: LiveZone, sink: Sink) -> None:
    world = World(zone, sink)
    event = {"domain": "shop", "type": "order.placed", "attributes": {"n": 1}}
    for more in ({"audience": ["ops"]}, {"destinations": ["other"]}, {"destinations": ["tester"]}):
        assert zone.emit("orders", {**event, **more}).status == 200
    assert world.preview(streams=["orders"])["deliveries"] == 1
    assert world.replay(streams=["orders"])["written"] == 1
    assert world.sent(1)[0].json["sequence"] == 3


def test_a_client_has_a_bounded_number_of_runs(zone: LiveZone, sink: Sink) -> None:
    world = World(zone, sink)
    world.emit(range(50))
    ids = [world.start(streams=["orders"], rate=1) for _ in range(5)]
    body = {"endpoint": world.endpoint, "streams": ["orders"]}
    assert world.ask("/v1/replays", body).refused(409, "limit_reached")["limit"] == 5
    for id in ids:
        assert world.ask(f"/v1/replays/{id}/cancel", {}).status == 200
    assert world.ask("/v1/replays", body).status == 202


def test_a_zone_has_a_bounded_number_of_runs_also_of_several_clients_at_once(
    zone: LiveZone, sink: Sink
) -> None:
    """Two clients took the last place at the same time."""
    world = World(zone, sink)
    zone.key("listen:*", client="other")
    insert = (
        "INSERT INTO replay_runs (zone_id, client_id, endpoint_id, source, requested_by, params,"
        " position, rate, state) SELECT c.zone_id, c.id, %s, 'log', 'other', '{}', '{}', 1,"
        " 'paused' FROM clients c JOIN zones z ON z.id = c.zone_id, generate_series(1, %s)"
        " WHERE z.name = %s AND c.name = 'other'"
    )
    zone.hub.sql(insert, world.endpoint, 19, zone.name)
    body = {"endpoint": world.endpoint, "streams": ["orders"]}
    with (
        psycopg.connect(zone.hub.database_url) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        other.execute("SELECT FROM zones WHERE name = %s FOR NO KEY UPDATE", (zone.name,))
        other.execute(insert, (world.endpoint, 1, zone.name))
        asked = pool.submit(world.ask, "/v1/replays", body)
        end = time.monotonic() + 60
        while not (asked.done() or zone.hub.sql(WAITING)):
            assert time.monotonic() < end
            time.sleep(0.02)
        other.commit()
        assert asked.result().refused(409, "limit_reached")["limit"] == 20
