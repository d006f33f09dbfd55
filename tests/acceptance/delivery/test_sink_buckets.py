"""Endpoints whose events become objects in a bucket of S3."""

import gzip
import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from tests.acceptance.delivery.test_sink_tables import deliveries, order, shown, until
from tests.live import Answer, LiveHub, LiveZone
from tests.s3_server import REGION, Bucket, S3Server, s3_server

WAITING = (
    "FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
    " WHERE NOT l.granted AND c.relname LIKE 'attempts%%'"
)
BATCH = {"events_max": 10, "bytes_max": 1_000_000, "linger_ms": 0}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(server: S3Server) -> Bucket:
    return server.bucket()


@pytest.fixture
def shop(hub: LiveHub, zone: LiveZone) -> LiveZone:
    hub.start_callbacks()
    zone.create_stream("orders")
    return zone


def create(shop: LiveZone, bucket: Bucket, *, settings: dict[str, Any], **more: Any) -> Answer:
    body = {
        "kind": "s3",
        "url": bucket.url,
        "settings": {"region": REGION, **settings},
        "authentication": bucket.authentication,
        "batch": BATCH,
        **more,
    }
    return shop.hub.call("POST", "/v1/endpoints", body, key=shop.admin)


def checked(shop: LiveZone, bucket: Bucket, **more: Any) -> dict[str, Any]:
    """Create an endpoint; return it after its check."""
    made = create(shop, bucket, **{"settings": {}, **more})
    assert made.status == 201, made
    id = made.json["id"]
    until(lambda: shown(shop, id)["verification"]["state"] != "pending")
    return shown(shop, id)


def connected(shop: LiveZone, bucket: Bucket, **more: Any) -> int:
    endpoint = checked(shop, bucket, **more)
    assert endpoint["enabled"], endpoint["verification"]
    shop.register({"streams": ["orders"], "domain": "shop", "endpoint": endpoint["id"]})
    id: int = endpoint["id"]
    return id


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def sequences(bucket: Bucket) -> list[int]:
    """Return the sequences of all objects, in the order of their names."""
    return [one["sequence"] for data in bucket.objects().values() for one in lines(data)]


def test_events_become_objects_in_the_order_of_their_stream(shop: LiveZone, bucket: Bucket) -> None:
    path = "hub/{stream}/y={year}/"
    endpoint = connected(shop, bucket, settings={"file": "ndjson.gz", "path": path})
    shop.emit("orders", [order(number) for number in range(35)])
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 35)
    objects = bucket.objects()
    assert all(key.startswith("hub/orders/y=20") and key.endswith(".ndjson.gz") for key in objects)
    parts = [lines(gzip.decompress(data)) for data in objects.values()]
    assert max(map(len, parts)) == 10
    assert [one["sequence"] for part in parts for one in part] == [*range(1, 36)]
    assert parts[0][0]["event"]["attributes"] == {"total": 0}
    one = deliveries(shop, endpoint, "delivered")[0]["id"]
    [attempt] = shop.hub.call("GET", f"/v1/deliveries/{one}", key=shop.admin).json["attempts"]
    assert "hub/orders/y=" in attempt["response"]
    assert bucket.authentication["secret_access_key"] not in str(attempt)


def test_an_object_that_is_full_does_not_wait_for_its_age(shop: LiveZone, bucket: Bucket) -> None:
    aged = {**BATCH, "linger_ms": 60_000}
    endpoint = connected(shop, bucket, settings={"file": "ndjson"}, batch=aged)
    shop.emit("orders", [order(number) for number in range(9)])
    until(lambda: len(deliveries(shop, endpoint, "pending")) == 9)
    shop.emit("orders", order(9))
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 10)
    assert len(bucket.objects()) == 1


def test_parquet_files_have_columns_and_the_whole_event(shop: LiveZone, bucket: Bucket) -> None:
    endpoint = connected(shop, bucket, settings={"file": "parquet"})
    shop.emit("orders", [order(1), order(2)])
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 2)
    tables = [pq.read_table(BytesIO(data)).to_pylist() for data in bucket.objects().values()]
    rows = [row for table in tables for row in table]
    assert [(row["sequence"], row["type"]) for row in rows] == [
        (1, "order.placed"),
        (2, "order.placed"),
    ]
    assert json.loads(rows[1]["document"])["event"]["attributes"] == {"total": 2}
    assert rows[0]["appended_at"].year >= 2026


def test_workers_killed_while_they_store_lose_and_double_nothing(
    hub: LiveHub, shop: LiveZone, bucket: Bucket
) -> None:
    """Results are not written while the table of attempts is locked: objects are stored, and the
    workers are killed before the hub knows.
    """
    endpoint = connected(shop, bucket, settings={"file": "ndjson"})
    with psycopg.connect(hub.database_url) as lock:
        lock.execute("LOCK TABLE attempts IN EXCLUSIVE MODE")
        shop.emit("orders", [order(number) for number in range(25)])
        until(lambda: hub.sql(f"SELECT pid {WAITING}") and bucket.objects())
        for worker in hub.workers:
            worker.kill()
        hub.sql(f"SELECT pg_terminate_backend(pid) {WAITING}")
    stored = bucket.objects()
    assert deliveries(shop, endpoint, "delivered") == []
    shop.emit("orders", order(25))  # the batch that is repeated may have more events
    for worker in hub.workers:
        worker.start()
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 26)
    assert sorted(sequences(bucket)) == [*range(1, 27)]
    assert bucket.objects().items() >= stored.items()


def test_wrong_keys_and_buckets_are_named_at_the_check(shop: LiveZone, bucket: Bucket) -> None:
    wrong = {**bucket.authentication, "secret_access_key": "another-secret-word"}
    verification = checked(shop, bucket, authentication=wrong)["verification"]
    assert (verification["outcome"], verification["status"]) == ("status", 403)
    assert "SignatureDoesNotMatch" in verification["detail"]
    absent = checked(shop, bucket, url=f"{bucket.url}-absent")["verification"]
    assert absent["status"] == 404
    assert "NoSuchBucket" in absent["detail"]


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("url", {"url": "postgresql://db.example/shop"}),
        ("url", {"url": "https://s3.example/bucket?acl"}),
        ("settings", {"settings": {"path": "{word}/"}}),
        ("settings.path", {"settings": {"path": "no-slash"}}),
        ("settings.file", {"settings": {"file": "csv"}}),
        ("batch", {"batch": None}),
        ("authentication.type", {"authentication": {"type": "bearer", "token": "word"}}),
        ("format", {"format": "cloudevents_binary"}),
    ],
)
def test_fields_that_a_bucket_does_not_have_are_refused(
    shop: LiveZone, bucket: Bucket, field: str, more: dict[str, Any]
) -> None:
    answer = create(shop, bucket, **{"settings": {}, **more})
    assert answer.status == 400, answer
    assert answer.json["position"]["field"].startswith(field), answer.json
    create(shop, bucket._replace(url="http://10.1.2.3/bucket"), settings={}).refused(
        400, "refused_address"
    )
