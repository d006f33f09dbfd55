"""Topics of Kafka as a connector reads them: positions, records of any form, what cannot work."""

import asyncio
import json
import ssl
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from eventhub.base import limits
from registrations.connectors.errors import ConnectorFault
from registrations.connectors.kinds.kafka import KafkaSettings, KafkaTopics, open_topics
from registrations.connectors.kinds.kafka_records import USUAL
from registrations.connectors.kinds.kind import InputSpec
from registrations.connectors.rows import InputRow, RowMap, fields_of
from registrations.endpoints.addresses import AllowedAddresses, parse_allowed
from registrations.sources.mapping import SourceMap
from tests.certificates import Authority
from tests.kafka_cluster import GIVEN, KafkaCluster, kafka_cluster

ANY = parse_allowed(["0.0.0.0/0"])


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCluster]:
    with kafka_cluster() as cluster:
        yield cluster


@asynccontextmanager
async def opened(
    url: str, allowed: AllowedAddresses = ANY, **settings: Any
) -> AsyncIterator[KafkaTopics]:
    spec = InputSpec(7, url, KafkaSettings(**settings), allowed.of_zone("z"))
    async with open_topics(spec) as topics:
        yield topics


async def fault(url: str, allowed: AllowedAddresses = ANY, **settings: Any) -> ConnectorFault:
    """Return why a connector does not open."""
    with pytest.raises(ConnectorFault) as raised:
        async with opened(url, allowed, **settings):
            pass
    return raised.value


async def read(topics: KafkaTopics, position: str, count: int) -> list[InputRow]:
    """Read on until there are so many rows."""
    found: list[InputRow] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            batch = await topics.read(position)
            found += batch.rows
            position = batch.rows[-1].position if batch.rows else batch.position or position
    return found


async def test_a_record_has_its_place_its_time_its_key_and_its_headers_in_the_event(
    kafka: KafkaCluster,
) -> None:
    topic = kafka.topic(1)
    records: list[dict[str, Any]] = [
        {"value": b'{"total": 3}', "key": "c17", "headers": [("a", b"x"), ("a", b"y")]},
        {"value": None, "key": "c17", "timestamp": 1_795_000_000_123},
        {"value": "fôr".encode()},
        {"value": b"\xff\x00", "key": b"\xff", "headers": [("b", None)]},
    ]
    kafka.produce(topic, records)
    async with opened(kafka.url, topics=[topic]) as topics:
        rows = await read(topics, await topics.start(), 4)
    documents = [json.loads(row.document or b"") for row in rows]
    assert [one["value"] for one in documents] == [{"total": 3}, None, "fôr", None]
    assert [one["key"] for one in documents] == ["c17", "c17", None, "/w=="]
    assert [one["headers"] for one in documents] == [{"a": "y"}, {}, {}, {"b": None}]
    assert [(row.body, row.content_type) for row in rows] == [
        (b'{"total": 3}', "application/json"),
        (None, ""),
        ("fôr".encode(), "text/plain"),
        (b"\xff\x00", "application/octet-stream"),
    ]
    events = [fields_of(RowMap("shop", SourceMap(), USUAL), row) for row in rows]
    assert [one["id"] for one in events] == [f"{topic}-0-{number}" for number in range(4)]
    assert [one["type"] for one in events] == ["record", "tombstone", "record", "record"]
    assert events[1] == {
        "domain": topic,
        "type": "tombstone",
        "key": "c17",
        "id": f"{topic}-0-1",
        "time": "2026-11-18T11:06:40.123000+00:00",
        "attributes": {"topic": topic, "partition": 0, "offset": 1},
        "node": "shop",
    }


async def test_reading_begins_where_it_was_asked_for(kafka: KafkaCluster) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, [{"value": b"1", "partition": 1} for _ in range(3)])
    for start, expected in (("earliest", [0, 0]), ("latest", [0, 3]), ("group", [0, 0])):
        async with opened(kafka.url, topics=[topic], start=start, group="beginners") as topics:
            assert json.loads(await topics.start()) == {topic: expected}


async def test_a_position_is_committed_to_the_group_and_a_connector_begins_there(
    kafka: KafkaCluster,
) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, [{"value": b"1", "partition": 1} for _ in range(3)])
    async with opened(kafka.url, topics=[topic], group=f"of-{topic}") as topics:
        start = await topics.start()
        position = (await read(topics, start, 3))[-1].position
        async with asyncio.timeout(20):
            while kafka.committed(f"of-{topic}", topic, 2) != [0, 3]:
                await topics.read(position)
        assert [await topics.lag(one) for one in (start, position)] == [3, 0]
    async with opened(kafka.url, topics=[topic], start="group", group=f"of-{topic}") as topics:
        assert await topics.start() == position


@pytest.mark.skipif(bool(GIVEN), reason="the servers of a cluster refuse nothing on request")
async def test_a_group_that_may_not_be_read_is_said(
    kafka: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "KAFKA_ANSWER_S_MAX", 1.0)
    with kafka.groups_refused(), pytest.raises(ConnectorFault) as raised:
        async with opened(kafka.url, topics=[kafka.topic(1)], start="group") as topics:
            await topics.start()
    assert (raised.value.code, raised.value.is_lasting) == ("not_permitted", True)
    assert "may not read the offsets of the group" in str(raised.value)
    assert "Group authorization failed" in str(raised.value)


async def test_a_new_partition_is_read_from_its_first_record(kafka: KafkaCluster) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, [{"value": b"1", "partition": one} for one in (0, 0, 1)])
    async with opened(kafka.url, topics=[topic], start="latest") as topics:
        rows = await read(topics, json.dumps({topic: [2]}), 1)  # as it was before there were two
        assert [row.name for row in rows] == [f"{topic}-1-0"]
        assert json.loads(rows[0].position) == {topic: [2, 1]}


async def test_records_that_were_removed_before_they_were_read_are_named(
    kafka: KafkaCluster,
) -> None:
    topic = kafka.topic(1)
    kafka.produce(topic, [{"value": b"1"}, {"value": b"2"}])
    first = kafka.trim(topic)
    async with opened(kafka.url, topics=[topic]) as topics:
        batch = await topics.read(json.dumps({topic: [1]}))
        assert (batch.rows, [*batch.lost]) == ([], [(f"{topic}-0", 1, first - 1)])
        assert json.loads(batch.position) == {topic: [first]}
        rows = await read(topics, batch.position, 1)
        assert rows[0].name == f"{topic}-0-{first}"


async def test_a_topic_that_ends_before_the_position_stops_the_connector(
    kafka: KafkaCluster,
) -> None:
    topic = kafka.topic(1)
    for position in ([5], [0, 0]):
        async with opened(kafka.url, topics=[topic]) as topics:
            with pytest.raises(ConnectorFault) as raised:
                await topics.read(json.dumps({topic: position}))
        assert (raised.value.code, raised.value.is_lasting) == ("position_ahead", True)


async def test_what_cannot_work_has_a_reason(kafka: KafkaCluster) -> None:
    assert (await fault(kafka.url, topics=["none"])).code == "no_topic"
    assert (await fault("kafka://127.0.0.1:1", topics=["t"])).code == "unreachable"
    assert (await fault("kafka://nowhere.invalid", topics=["t"])).code == "unreachable"
    assert (await fault("kafka://127.0.0.1:1", parse_allowed([]), topics=["t"])).is_lasting


@pytest.mark.skipif("," not in (GIVEN or ","), reason="the cluster has one server")
async def test_a_server_that_the_cluster_names_must_be_allowed_too(kafka: KafkaCluster) -> None:
    first, *others = kafka.servers.split(",")
    found = await fault(f"kafka://{first}", parse_allowed([first]), topics=[kafka.topic()])
    assert (found.code, found.is_lasting) == ("address_refused", True)
    assert any(other in found.detail for other in others)


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a server of Kafka that refuses the password."""
    names = struct.pack(">hi", 0, 1) + struct.pack(">h5s", 5, b"PLAIN")
    versions = [(18, 0, 0), (17, 0, 1), (36, 0, 0), (3, 0, 1)]  # of the kinds of requests
    known = struct.pack(">i", len(versions)) + b"".join(
        struct.pack(">hhh", *one) for one in versions
    )
    words = b"the password is wrong"
    refusal = struct.pack(">hh", 58, len(words)) + words + struct.pack(">i", 0)
    with suppress(asyncio.IncompleteReadError, OSError):
        while True:
            [size] = struct.unpack(">i", await reader.readexactly(4))
            kind, version, number = struct.unpack_from(">hhi", await reader.readexactly(size))
            unsupported = struct.pack(">h", 35 if version else 0)
            body = {18: unsupported + known, 17: names, 36: refusal}[kind]
            writer.write(struct.pack(">ii", len(body) + 4, number) + body)
    writer.close()


async def test_the_certificate_is_verified_and_a_refused_password_is_said(tmp_path: Path) -> None:
    own, other = Authority("own"), Authority("other")
    (tmp_path / "server.pem").write_text("".join(own.issue("kafka.example")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    async with await asyncio.start_server(_refuse, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        url = f"kafkas://eventhub:a-hidden-word@127.0.0.1:{port}?sasl=PLAIN"
        unknown = await fault(url, topics=["t"], ca=other.pem)
        assert (unknown.code, "certificate verify failed" in unknown.detail) == ("tls", True)
        found = await fault(url, topics=["t"], ca=own.pem)
        assert (found.code, found.is_lasting) == ("wrong_credentials", False)
        assert "the password is wrong" in found.detail and "hidden" not in found.detail
