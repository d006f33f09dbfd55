"""Endpoints whose events become records of a topic of Kafka."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.delivery import test_sink_tables
from tests.acceptance.delivery.test_sink_tables import deliveries, shown, until
from tests.kafka_cluster import GIVEN, KafkaCluster, kafka_cluster
from tests.live import Answer, LiveHub, LiveZone

shop = test_sink_tables.shop
PASSWORD = "a-hidden-word"
LOGIN = {"type": "basic", "username": "hub", "password": PASSWORD}


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCluster]:
    with kafka_cluster() as cluster:
        yield cluster


def create(shop: LiveZone, kafka: KafkaCluster, topic: str, **more: Any) -> Answer:
    body = {"kind": "kafka", "url": kafka.url, "settings": {"topic": topic}, **more}
    return shop.hub.call("POST", "/v1/endpoints", body, key=shop.admin)


def checked(shop: LiveZone, kafka: KafkaCluster, topic: str, **more: Any) -> dict[str, Any]:
    """Create an endpoint; return it after its check."""
    made = create(shop, kafka, topic, **more)
    assert made.status == 201, made
    id = made.json["id"]
    until(lambda: shown(shop, id)["verification"]["state"] != "pending")
    return shown(shop, id)


def connected(shop: LiveZone, kafka: KafkaCluster, topic: str, **more: Any) -> int:
    """Create an endpoint that gets all events of the stream; return its id."""
    endpoint = checked(shop, kafka, topic, **more)
    assert endpoint["enabled"], endpoint["verification"]
    shop.register({"streams": ["orders"], "domain": "shop", "endpoint": endpoint["id"]})
    id: int = endpoint["id"]
    return id


def order(number: int, **more: Any) -> dict[str, Any]:
    event = {"domain": "shop", "type": "order.placed", "key": f"c{number % 7}"}
    return {**event, "attributes": {"n": number}, **more}


def test_a_record_has_the_event_its_key_and_headers(shop: LiveZone, kafka: KafkaCluster) -> None:
    topic = kafka.topic(3)
    endpoint = connected(shop, kafka, topic)
    shop.emit("orders", [order(number, id=f"o-{number}") for number in range(20)])
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 20)
    records = kafka.records(topic)
    documents = [json.loads(record.value or b"") for record in records]
    assert sorted(one["event"]["attributes"]["n"] for one in documents) == [*range(20)]
    for record, document in zip(records, documents, strict=True):
        number = document["event"]["attributes"]["n"]
        assert record.key == f"c{number % 7}"
        assert record.headers == {
            "content-type": "application/json",
            "eventhub-delivery": document["id"],
            "eventhub-stream": "orders",
            "eventhub-sequence": str(document["sequence"]),
            "eventhub-type": "order.placed",
            "eventhub-id": f"o-{number}",
        }
    assert len({record.partition for record in records}) > 1
    one = deliveries(shop, endpoint, "delivered")[0]["id"]
    attempts = shop.hub.call("GET", f"/v1/deliveries/{one}", key=shop.admin).json["attempts"]
    assert f"records to {topic}" in attempts[0]["request"]
    assert "partition " in attempts[0]["response"]


def test_cloudevents_have_a_chosen_key(shop: LiveZone, kafka: KafkaCluster) -> None:
    topic = kafka.topic(1)
    settings = {"topic": topic, "key": "/n"}
    endpoint = connected(
        shop, kafka, topic, settings=settings, format="cloudevents_structured", ordered=False
    )
    shop.emit("orders", order(5))
    until(lambda: deliveries(shop, endpoint, "delivered"))
    [record] = kafka.records(topic)
    event = json.loads(record.value or b"")
    assert (event["type"], event["subject"], record.key) == ("order.placed", "c5", "5")
    assert record.headers["content-type"] == "application/cloudevents+json"
    assert record.headers["eventhub-delivery"] == event["eventhubdelivery"]
    assert (record.headers["eventhub-stream"], record.headers["eventhub-sequence"]) == (
        "orders",
        "1",
    )


def test_no_event_is_lost_or_out_of_order_while_workers_are_killed(
    hub: LiveHub, shop: LiveZone, kafka: KafkaCluster
) -> None:
    topic = kafka.topic(4)
    connected(shop, kafka, topic, batch={"events_max": 20})
    for _ in range(3):
        count = len(kafka.records(topic))
        shop.emit("orders", [order(number) for number in range(400)])
        until(lambda: len(kafka.records(topic)) > count)  # noqa: B023 - it is called at once
        for worker in hub.workers:
            worker.kill()
            worker.start()
    until(lambda: len({one.headers["eventhub-delivery"] for one in kafka.records(topic)}) == 1_200)
    first: dict[str | None, list[int]] = defaultdict(list)
    seen: set[str] = set()
    for record in kafka.records(topic):
        id = record.headers["eventhub-delivery"]
        if id not in seen:
            first[record.key].append(int(record.headers["eventhub-sequence"]))
        seen.add(id)
    assert len(first) == 7
    assert all(own == sorted(own) for own in first.values())


@pytest.mark.skipif(bool(GIVEN), reason="the cluster is not ours to stop")
def test_events_wait_while_the_cluster_is_away_and_become_dead_letters_which_are_sent_again(
    shop: LiveZone, kafka: KafkaCluster
) -> None:
    topic = kafka.topic(1)
    endpoint = connected(shop, kafka, topic, timeout_s=1, retry_schedule=[1])
    patient = connected(shop, kafka, topic, timeout_s=1, retry_schedule=[1] * 20)
    kafka.down()
    try:
        shop.emit("orders", order(1))
        [dead] = until(lambda: deliveries(shop, endpoint, "dead_lettered"))
        assert dead["last_outcome"] in ("connection", "timeout")
    finally:
        kafka.up()
    until(lambda: deliveries(shop, patient, "delivered"))
    assert len(kafka.records(topic)) == 1
    run = shop.hub.call("POST", f"/v1/endpoints/{endpoint}/recover", {}, key=shop.admin)
    assert run.status in (201, 202), run
    until(lambda: len(kafka.records(topic)) == 2)


@pytest.mark.skipif(bool(GIVEN), reason="the cluster is not ours to stop")
def test_an_event_is_not_delivered_before_it_is_acknowledged(
    shop: LiveZone, kafka: KafkaCluster
) -> None:
    """Also by a producer that is open, which takes it all the same."""
    topic = kafka.topic(1)
    endpoint = connected(shop, kafka, topic, timeout_s=1, retry_schedule=[1] * 20)
    shop.emit("orders", order(1))
    until(lambda: deliveries(shop, endpoint, "delivered"))
    kafka.down()
    try:
        shop.emit("orders", order(2))

        def attempted() -> list[Any]:
            each = deliveries(shop, endpoint, "pending") + deliveries(shop, endpoint, "delivered")
            return [one for one in each if one["sequence"] == 2 and one["attempt_count"]]

        [attempt] = until(attempted)
        assert attempt["state"] == "pending"
    finally:
        kafka.up()
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 2)
    written = [json.loads(one.value or b"")["sequence"] for one in kafka.records(topic)]
    assert {*written} == {1, 2}


def test_a_record_that_is_refused_is_a_dead_letter_and_what_follows_is_written(
    shop: LiveZone, kafka: KafkaCluster
) -> None:
    topic = kafka.topic(1)
    endpoint = connected(shop, kafka, topic, retry_schedule=[])
    kafka.refuse(topic)
    shop.emit("orders", order(1))
    [dead] = until(lambda: deliveries(shop, endpoint, "dead_lettered"))
    assert dead["last_outcome"] == "rejected"
    kafka.accept(topic)
    shop.emit("orders", order(2))
    until(lambda: deliveries(shop, endpoint, "delivered"))
    [record] = kafka.records(topic)
    assert json.loads(record.value or b"")["event"]["attributes"]["n"] == 2


def test_what_cannot_work_is_named_at_the_check(shop: LiveZone, kafka: KafkaCluster) -> None:
    missing = checked(shop, kafka, "none")
    assert (missing["enabled"], missing["reason"]) == (False, "unverified")
    found = missing["verification"]
    assert (found["outcome"], found["detail"]) == (
        "rejected",
        "Broker: Unknown topic or partition",
    )
    away = checked(shop, kafka, "none", url="kafka://127.0.0.1:1")["verification"]
    assert away["outcome"] == "connection"
    refused = create(shop, kafka, "none", url="kafka://10.1.2.3:9092")
    refused.refused(400, "refused_address")


def test_the_password_is_never_shown_and_is_bound_to_its_servers(
    shop: LiveZone, kafka: KafkaCluster
) -> None:
    made = checked(shop, kafka, "none", authentication=LOGIN)
    path = f"/v1/endpoints/{made['id']}"
    assert made["authentication"]["username"] == "hub"
    for url in ("kafka://kafka.example", f"{kafka.url},kafka.example:9092"):
        moved = shop.hub.call("PATCH", path, {"url": url}, key=shop.admin)
        moved.refused(409, "credentials_bound")
    removed = shop.hub.call("PATCH", path, {"authentication": None}, key=shop.admin)
    assert removed.json["authentication"] is None
    assert PASSWORD not in str([made, shown(shop, made["id"]), moved, removed])


def test_another_zone_sees_nothing_of_it(hub: LiveHub, shop: LiveZone, kafka: KafkaCluster) -> None:
    made = checked(shop, kafka, kafka.topic(1))
    path = f"/v1/endpoints/{made['id']}"
    hub.call("GET", path, key=hub.new_zone().admin).refused(404, "unknown_endpoint")


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("url", {"url": "kafka://me:word@kafka.example"}),
        ("url", {"url": "kafka://kafka.example?sasl=PLAIN"}),
        ("url", {"url": "kafka://kafka.example:9092,"}),
        ("url", {"url": "https://kafka.example"}),
        ("settings", {"settings": {}}),
        ("settings.topic", {"settings": {"topic": "a topic"}}),
        ("settings.key", {"settings": {"topic": "t", "key": "key"}}),
        ("settings", {"settings": {"topic": "t", "ca": "no certificate"}}),
        ("settings.word", {"settings": {"topic": "t", "word": 1}}),
        ("authentication.type", {"authentication": {"type": "bearer", "token": "word"}}),
        ("headers", {"headers": {"x-word": "word"}}),
        ("format", {"format": "cloudevents_binary"}),
        ("handshake", {"handshake": "challenge"}),
    ],
)
def test_fields_that_a_topic_does_not_have_are_refused(
    shop: LiveZone, kafka: KafkaCluster, field: str, more: dict[str, Any]
) -> None:
    answer = create(shop, kafka, "t", **more)
    assert answer.status == 400, answer
    assert answer.json["position"]["field"].startswith(field), answer.json
