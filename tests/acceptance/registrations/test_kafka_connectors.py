"""Connectors of a running hub that read topics of Kafka."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.registrations import test_connectors
from tests.acceptance.registrations.test_connectors import change, events, ids, shown, until
from tests.kafka_cluster import GIVEN, KafkaCluster, kafka_cluster
from tests.live import LiveHub, LiveZone
from tests.live_processes import LiveProcess

process, zone = test_connectors.process, test_connectors.zone
WORD = "a-hidden-word"


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCluster]:
    with kafka_cluster() as cluster:
        yield cluster


def create(zone: LiveZone, kafka: KafkaCluster, *topics: str, **fields: Any) -> dict[str, Any]:
    body = {
        "name": "shop",
        "stream": "orders",
        "kind": "kafka",
        "url": kafka.url,
        "settings": {"topics": topics},
        **fields,
    }
    answer = zone.hub.call("POST", "/v1/connectors", body, key=zone.admin)
    assert answer.status == 201, answer
    created: dict[str, Any] = answer.json
    return created


def in_state(zone: LiveZone, connector: dict[str, Any], state: str) -> dict[str, Any] | None:
    found = shown(zone, connector)
    return found if found["state"] == state else None


def writing(kafka: KafkaCluster, topic: str, records: int, per_s: float) -> threading.Thread:
    """Write records with 17 keys at a rate, each with its number."""

    def write() -> None:
        began_s = time.monotonic()
        for done in range(0, records, 20):
            time.sleep(max(began_s + done / per_s - time.monotonic(), 0))
            numbers = range(done, done + 20)
            kafka.produce(
                topic, [{"key": str(one % 17), "value": b'{"n": %d}' % one} for one in numbers]
            )

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def test_each_record_becomes_one_event_in_the_order_of_its_key_while_the_process_is_killed(
    zone: LiveZone, kafka: KafkaCluster, process: LiveProcess
) -> None:
    topics = [kafka.topic(4), kafka.topic(2)]
    made = create(zone, kafka, *topics)
    writers = [writing(kafka, topic, records=1_600, per_s=500.0) for topic in topics]
    for count in (200, 900, 1_700, 2_400):
        until(lambda: shown(zone, made)["rows"] >= count)  # noqa: B023 - it is called at once
        process.kill()
        process.start()
    for writer in writers:
        writer.join()
    until(lambda: shown(zone, made)["rows"] >= 3_200)
    found = events(zone)
    written = {
        f"{topic}-{record.partition}-{record.offset}"
        for topic in topics
        for record in kafka.records(topic)
    }
    assert len(written) == 3_200
    assert sorted(event["id"] for event in found) == sorted(written)
    by_key: dict[tuple[str, str], list[int]] = defaultdict(list)
    for event in found:
        by_key[event["domain"], event["key"]].append(event["body"]["n"])
    assert len(by_key) == 2 * 17
    assert all(own == sorted(own) for own in by_key.values())
    assert shown(zone, made)["rows"] == 3_200
    until(lambda: shown(zone, made)["lag"] == 0)


def test_the_map_reads_any_part_of_a_record_and_a_tombstone_is_an_event(
    zone: LiveZone, kafka: KafkaCluster, process: LiveProcess
) -> None:
    topic = kafka.topic(1)
    mapping = {
        "domain": {"body": "/headers/from", "default": "shop"},
        "type": {"join": [{"body": "/value/what"}, {"body": "/type"}]},
        "id": {"body": "/value/id"},
    }
    create(zone, kafka, topic, mapping=mapping)
    placed = {"value": b'{"what": "order", "id": 9}', "headers": {"from": "web"}, "key": "c1"}
    kafka.produce(topic, [placed, placed, {"value": None, "key": "c1"}])
    found = until(lambda: len(events(zone)) == 2 and events(zone))
    assert [(one["domain"], one["type"], one["key"]) for one in found] == [
        ("web", "order.record", "c1"),
        ("shop", "tombstone", "c1"),
    ]
    assert found[0]["id"] == "9" and "body" not in found[1]


def test_records_that_are_gone_stop_the_connector_or_are_announced(
    zone: LiveZone, kafka: KafkaCluster, process: LiveProcess
) -> None:
    topic = kafka.topic(1)
    kafka.produce(topic, [{"value": b"1"}])
    made = create(zone, kafka, topic, mapping={"type": {"value": "big"}})
    until(lambda: ids(zone) == [f"{topic}-0-0"])
    change(zone, made, enabled=False)
    first = kafka.trim(topic)
    change(zone, made, enabled=True)
    stopped = until(lambda: in_state(zone, made, "stopped"))
    assert stopped["error"]["code"] == "rows_lost"
    assert f"1 to {first - 1} of {topic}-0" in stopped["error"]["detail"]
    assert len(ids(zone)) == 1
    change(zone, made, on_refusal="set_aside")
    until(lambda: f"{topic}-0-{first}" in ids(zone))
    [lost] = [one for one in events(zone, "system") if one["type"] == "connector.rows_lost"]
    assert lost["attributes"]["name"] == "shop"
    assert lost["attributes"]["place"] == f"{topic}-0"
    assert (lost["attributes"]["first"], lost["attributes"]["last"]) == (1, first - 1)


@pytest.mark.skipif(bool(GIVEN), reason="the cluster is not ours to stop")
def test_a_cluster_that_is_away_is_reported_and_read_on_afterwards(
    zone: LiveZone, kafka: KafkaCluster, process: LiveProcess
) -> None:
    topic = kafka.topic(1)
    kafka.produce(topic, [{"value": b"1"}])
    made = create(zone, kafka, topic)
    until(lambda: ids(zone) == [f"{topic}-0-0"])
    kafka.down()
    try:
        held_up = until(lambda: in_state(zone, made, "retrying"))
        assert held_up["error"]["code"] == "unreachable"
    finally:
        kafka.up()
    kafka.produce(topic, [{"value": b"2"}])
    until(lambda: ids(zone) == [f"{topic}-0-0", f"{topic}-0-1"])
    assert until(lambda: in_state(zone, made, "running"))["error"] is None


def test_what_cannot_work_is_reported_and_the_password_is_nowhere_in_clear(
    zone: LiveZone, kafka: KafkaCluster, process: LiveProcess
) -> None:
    url = f"kafka://eventhub:{WORD}@{kafka.servers}"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"settings": {"topics": ["none"]}}, "no_topic"),
        ({"url": "kafka://10.0.0.1"}, "address_refused"),
        ({"url": "kafka://127.0.0.1:1"}, "unreachable"),
        ({"url": url}, "wrong_credentials"),
        ({"url": url.replace("kafka:", "kafkas:")}, "unreachable"),
    ]
    made = [
        (create(zone, kafka, "orders", name=f"case-{number}", **fields), code)
        for number, (fields, code) in enumerate(cases)
    ]
    for connector, code in made:
        found = until(lambda: shown(zone, connector)["error"])  # noqa: B023
        assert found["code"] == code or GIVEN, found
    assert made[3][0]["address"] == kafka.servers
    rows = zone.hub.sql("SELECT k::text, s::text FROM connectors k, connector_states s")
    seen = [*map(str, rows), str(shown(zone, made[3][0])), process.log()]
    assert not any(WORD in text for text in [*seen, str(events(zone, "system"))])


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("url", {"url": "postgresql://u:p@h/d"}),
        ("url", {"url": f"kafka://u:{WORD}@h?sasl=PLAIN"}),
        ("url", {"url": f"kafkas://u:{WORD}@h?sasl=GSSAPI"}),
        ("url", {"url": "kafka://h:0"}),
        ("settings.topics", {"settings": {}}),
        ("settings.topics", {"settings": {"topics": []}}),
        ("settings.topics", {"settings": {"topics": ["a topic"]}}),
        ("settings", {"settings": {"topics": ["t", "t"]}}),
        ("settings.start", {"settings": {"topics": ["t"], "start": "now"}}),
        ("settings", {"settings": {"topics": ["t"], "ca": "no certificate"}}),
        ("settings.word", {"settings": {"topics": ["t"], "word": 1}}),
    ],
)
def test_fields_that_cannot_be_read_are_refused_with_their_place(
    zone: LiveZone, field: str, more: dict[str, Any]
) -> None:
    body = {"name": "n", "stream": "orders", "kind": "kafka", "url": "kafka://h", **more}
    answer = zone.hub.call("POST", "/v1/connectors", {"settings": {"topics": ["t"]}, **body},
                           key=zone.admin)  # fmt: skip
    assert answer.status == 400, answer
    assert answer.json["position"]["field"].startswith(field), answer.json
    assert WORD not in str(answer)


def test_another_zone_sees_nothing_of_it(hub: LiveHub, zone: LiveZone, kafka: KafkaCluster) -> None:
    made = create(zone, kafka, "orders")
    other = hub.new_zone()
    path = f"/v1/connectors/{made['id']}"
    for method in ("GET", "DELETE"):
        hub.call(method, path, key=other.admin).refused(404, "unknown_connector")
    assert hub.call("GET", "/v1/connectors", key=other.admin).json["items"] == []
