"""Connectors of a running hub: the rows of an outbox table in a database of its own."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from eventhub.supervisor.postgres import SOCKET
from tests.databases import new_database
from tests.live import LiveHub, LiveZone
from tests.live_processes import MANAGE, LiveProcess
from tests.tcp_relay import Relay, relay_to

TABLE = """
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    aggregatetype text NOT NULL DEFAULT 'order', aggregateid text, type text, payload jsonb
);
CREATE INDEX ON outbox (transaction_id, id)
"""
PATIENCE_S = 30.0


class Outbox:
    """A database with a table `outbox`. `url`: over TCP, as a client gives it to a connector."""

    def __init__(self, url: str, relay: Relay) -> None:
        self.url = url
        self.relay = relay
        parts = conninfo_to_dict(url)
        self.tcp_url = (
            f"postgresql://{parts['user']}:hidden-word@127.0.0.1:{relay.port}/{parts['dbname']}"
        )
        self._connection = self.connect()
        self.run(TABLE)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def run(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement.encode(), values)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def process(hub: LiveHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveProcess]:
    log = tmp_path_factory.mktemp("connect") / "connect.log"
    process = LiveProcess("connect", (MANAGE, "connect"), hub.env, log)
    process.start()
    yield process
    process.stop()


@pytest.fixture
def outbox() -> Iterator[Outbox]:
    with new_database("outbox") as url:
        folder = Path(str(conninfo_to_dict(url)["host"]))
        with relay_to(str(folder / SOCKET)) as relay:
            outbox = Outbox(url, relay)
            yield outbox
            outbox.close()


@pytest.fixture
def zone(hub: LiveHub) -> Iterator[LiveZone]:
    zone = hub.new_zone()
    zone.create_stream("orders")
    yield zone
    for one in zone.hub.call("GET", "/v1/connectors", key=zone.admin).json["items"]:
        zone.hub.call("DELETE", f"/v1/connectors/{one['id']}", key=zone.admin)


def create(zone: LiveZone, outbox: Outbox, **fields: Any) -> dict[str, Any]:
    settings = {"table": "outbox", "transaction": "transaction_id", "body": "payload"}
    body = {
        "name": "shop",
        "stream": "orders",
        "kind": "outbox-polling",
        "url": outbox.tcp_url,
        "settings": settings,
        **fields,
    }
    answer = zone.hub.call("POST", "/v1/connectors", body, key=zone.admin)
    assert answer.status == 201, answer
    created: dict[str, Any] = answer.json
    return created


def change(zone: LiveZone, connector: dict[str, Any], **fields: Any) -> dict[str, Any]:
    path = f"/v1/connectors/{connector['id']}"
    answer = zone.hub.call("PATCH", path, fields, key=zone.admin)
    assert answer.status == 200, answer
    changed: dict[str, Any] = answer.json
    return changed


def shown(zone: LiveZone, connector: dict[str, Any]) -> dict[str, Any]:
    path = f"/v1/connectors/{connector['id']}"
    found: dict[str, Any] = zone.hub.call("GET", path, key=zone.admin).json
    return found


def events(zone: LiveZone, stream: str = "orders") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    start = "oldest"
    while True:
        path = f"/v1/streams/{stream}/events?limit=1000&from={start}"
        page = zone.hub.call("GET", path, key=zone.admin).json
        found += [one["event"] for one in page["events"]]
        if not page["events"]:
            return found
        start = "{segment}:{sequence}".format(**page["cursor"])


def until(condition: Callable[[], Any]) -> Any:
    until_s = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < until_s, "it did not come"
        time.sleep(0.05)
    return found


def ids(zone: LiveZone) -> list[str]:
    return [event["id"] for event in events(zone)]


def writing(outbox: Outbox, writer: int, rows: int, per_s: float) -> threading.Thread:
    """Insert rows at a rate, in transactions of 1 to 7; some rolled back after they took ids."""

    def write() -> None:
        insert = b"INSERT INTO outbox (aggregateid, type, payload) VALUES (%s, 'made', %s)"
        began_s, done = time.monotonic(), 0
        with outbox.connect() as connection:
            while done < rows:
                time.sleep(max(began_s + done / per_s - time.monotonic(), 0))
                size = min(1 + done % 7, rows - done)
                with connection.transaction(force_rollback=done % 5 == 4 and done > size):
                    connection.execute(insert, (f"gone-{writer}", "{}"))
                    for number in range(done, done + size):
                        connection.execute(insert, (str(writer), f'{{"n": {number}}}'))
                done += size

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def test_no_row_is_lost_repeated_or_reordered_when_the_process_is_killed_amid_inserts(
    zone: LiveZone, outbox: Outbox, process: LiveProcess
) -> None:
    made = create(zone, outbox)
    writers = [writing(outbox, number, rows=900, per_s=500.0) for number in range(2)]
    for count in (200, 900):
        until(lambda: shown(zone, made)["rows"] >= count)  # noqa: B023 - it is called at once
        process.kill()
        process.start()
    for writer in writers:
        writer.join()
    with outbox.connect() as connection:
        rows = connection.execute("SELECT id, aggregateid FROM outbox").fetchall()
    until(lambda: shown(zone, made)["rows"] >= len(rows))
    found = events(zone)
    assert sorted(int(event["id"]) for event in found) == sorted(id for id, _ in rows)
    by_writer: dict[str, list[int]] = defaultdict(list)
    for event in found:
        by_writer[event["attributes"]["aggregateid"]].append(int(event["id"]))
    assert {*by_writer} >= {"0", "1"}
    assert all(own == sorted(own) for own in by_writer.values())


@pytest.mark.parametrize("transaction", ["transaction_id", None])
def test_rows_of_a_transaction_that_began_before_come_before_those_of_a_later_one(
    zone: LiveZone, outbox: Outbox, process: LiveProcess, transaction: str | None
) -> None:
    settings = {"table": "outbox", "body": "payload"}
    made = create(
        zone, outbox, settings={**settings, "transaction": transaction} if transaction else settings
    )
    outbox.run("INSERT INTO outbox (aggregateid) VALUES ('first')")
    until(lambda: ids(zone) == ["1"])
    with outbox.connect() as slow, slow.transaction():
        slow.execute("INSERT INTO outbox (aggregateid) VALUES ('slow')")
        outbox.run("INSERT INTO outbox (aggregateid) VALUES ('quick')")
        lag = change(zone, made, enabled=False) and change(zone, made, enabled=True)
        assert lag["position"]
        until(lambda: shown(zone, made)["lag"] == 1)  # the row that may not be read yet
        assert ids(zone) == ["1"]
    until(lambda: ids(zone) == ["1", "2", "3"])


def test_a_row_that_is_no_event_stops_the_connector_until_the_map_is_changed(
    zone: LiveZone, outbox: Outbox, process: LiveProcess
) -> None:
    outbox.run("INSERT INTO outbox (aggregateid, type) VALUES ('1', 'a'), ('2', ''), ('3', 'c')")
    typed = {"type": {"body": "/type"}}
    made = create(zone, outbox, mapping=typed)
    stopped = until(lambda: _in_state(zone, made, "stopped"))
    assert stopped["error"]["code"] == "unmapped_delivery"
    assert "row 2" in stopped["error"]["detail"] and "`type`" in stopped["error"]["detail"]
    assert stopped["error"]["since"] and stopped["rows"] == 1
    assert ids(zone) == ["1"]
    better = {"type": {"join": [{"value": "kind"}, {"body": "/type"}]}}
    path = f"/v1/connectors/{made['id']}/test"
    row = {"id": 2, "type": "", "aggregateid": "2"}
    tried = zone.hub.call("POST", path, {"mapping": better, "row": row}, key=zone.admin)
    assert tried.json["event"]["type"] == "kind" and tried.json["event"]["id"] == "2"
    assert change(zone, made, mapping=better)["state"] == "starting"
    until(lambda: ids(zone) == ["1", "2", "3"])
    running = until(lambda: _in_state(zone, made, "running"))
    assert running["error"] is None


def test_rows_that_are_no_events_are_set_aside_as_events_of_system(
    zone: LiveZone, outbox: Outbox, process: LiveProcess
) -> None:
    zone.create_stream("strict", undeclared="refuse")
    outbox.run("INSERT INTO outbox (aggregateid, type) VALUES ('1', 'a'), ('2', ''), ('3', 'c')")
    typed = {"type": {"body": "/type"}}
    made = create(zone, outbox, mapping=typed, on_refusal="set_aside")
    until(lambda: ids(zone) == ["1", "3"])
    strict = create(zone, outbox, name="strict", stream="strict", on_refusal="set_aside")
    until(lambda: shown(zone, strict)["refused"] == 3)
    assert (shown(zone, made)["rows"], shown(zone, made)["refused"]) == (3, 1)
    refused = [one for one in events(zone, "system") if one["type"] == "connector.row_refused"]
    found = [(one["attributes"]["name"], one["attributes"]["row"], one["attributes"]["code"])
             for one in refused]  # fmt: skip
    assert found == [
        ("shop", "2", "unmapped_delivery"),
        ("strict", "2", "unmapped_delivery"),
        ("strict", "1", "undeclared_type"),
        ("strict", "3", "undeclared_type"),
    ]
    assert '"aggregateid": "2"' in refused[0]["attributes"]["content"]


def test_a_paused_connector_reads_nothing_and_a_deleted_one_is_gone(
    zone: LiveZone, outbox: Outbox, process: LiveProcess
) -> None:
    made = create(zone, outbox)
    outbox.run("INSERT INTO outbox (aggregateid) VALUES ('1')")
    until(lambda: ids(zone) == ["1"])
    assert change(zone, made, enabled=False)["state"] == "paused"
    outbox.run("INSERT INTO outbox (aggregateid) VALUES ('2')")
    other = create(zone, outbox, name="other", stream=zone.create_stream("others"))
    until(lambda: shown(zone, other)["rows"] == 2)
    assert ids(zone) == ["1"]
    change(zone, made, enabled=True)
    until(lambda: ids(zone) == ["1", "2"])
    zone.hub.call("DELETE", f"/v1/connectors/{made['id']}", key=zone.admin)
    path = f"/v1/connectors/{made['id']}"
    zone.hub.call("GET", path, key=zone.admin).refused(404, "unknown_connector")
    again = create(zone, outbox)
    until(lambda: shown(zone, again)["rows"] == 2)
    assert ids(zone) == ["1", "2"]  # the log knows their ids


def test_an_unreachable_database_is_reported_and_read_on_afterwards(
    zone: LiveZone, outbox: Outbox, process: LiveProcess
) -> None:
    made = create(zone, outbox)
    outbox.run("INSERT INTO outbox (aggregateid) VALUES ('1')")
    until(lambda: ids(zone) == ["1"])
    outbox.relay.stop()
    held_up = until(lambda: _in_state(zone, made, "retrying"))
    assert held_up["error"]["code"] == "unreachable"
    outbox.run("INSERT INTO outbox (aggregateid) VALUES ('2')")
    outbox.relay.listen()
    until(lambda: ids(zone) == ["1", "2"])


def test_what_cannot_work_is_reported_with_its_reason(
    zone: LiveZone, outbox: Outbox, process: LiveProcess
) -> None:
    outbox.run("CREATE TABLE loose (id bigint)")
    outbox.run("CREATE VIEW seen AS SELECT * FROM outbox")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"settings": {"table": "none"}}, "no_table"),
        ({"settings": {"table": "seen"}}, "no_table"),
        ({"settings": {"table": "outbox", "order": "none"}}, "no_column"),
        ({"settings": {"table": "loose"}}, "nullable_column"),
        ({"settings": {"table": "outbox", "transaction": "id"}}, "wrong_column"),
        ({"url": "postgresql://u:p@10.0.0.1:1/d"}, "address_refused"),
        ({"url": "postgresql://u:p@127.0.0.1:1/d"}, "unreachable"),
    ]
    made = [
        (create(zone, outbox, name=f"case-{number}", **fields), code)
        for number, (fields, code) in enumerate(cases)
    ]
    for connector, code in made:
        found = until(lambda: shown(zone, connector)["error"])  # noqa: B023
        assert found["code"] == code, found


def test_the_url_is_nowhere_in_clear(zone: LiveZone, outbox: Outbox, process: LiveProcess) -> None:
    made = create(zone, outbox)
    assert made["address"] == outbox.tcp_url.partition("@")[2]
    outbox.relay.stop()
    until(lambda: _in_state(zone, made, "retrying"))
    rows = zone.hub.sql("SELECT k::text, s::text FROM connectors k, connector_states s")
    seen = [*map(str, rows), str(shown(zone, made)), process.log(), str(events(zone, "system"))]
    assert not any("hidden-word" in text for text in seen)


def test_quotas_and_grants_apply_as_to_emits(
    zone: LiveZone, outbox: Outbox, process: LiveProcess
) -> None:
    body: dict[str, Any] = {"name": "n", "stream": "orders", "kind": "outbox-polling"}
    body |= {"url": outbox.tcp_url, "settings": {"table": "outbox"}}
    other = zone.key("emit:others", client="other")
    zone.hub.call("POST", "/v1/connectors", body, key=other).refused(403, "forbidden")
    made = create(zone, outbox)
    path = f"/v1/connectors/{made['id']}"
    zone.hub.call("GET", path, key=other).refused(404, "unknown_connector")
    zone.hub.call("POST", "/v1/connectors", {**body, "name": "shop"}, key=zone.admin).refused(
        409, "connector_exists"
    )
    zone.create_stream("brief", durability="transient")
    refused = zone.hub.call("POST", "/v1/connectors", {**body, "stream": "brief"}, key=zone.admin)
    refused.refused(400, "invalid_field")


def _in_state(zone: LiveZone, connector: dict[str, Any], state: str) -> dict[str, Any] | None:
    found = shown(zone, connector)
    return found if found["state"] == state else None
