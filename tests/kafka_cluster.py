"""A cluster of Kafka for tests: librdkafka's mock cluster, in a process of its own, or all the
servers of a cluster, which EVENTHUB_TEST_KAFKA names (HOST:PORT,HOST:PORT).

The mock cluster speaks Kafka's protocol over TCP: producers, idempotent ones too, consumers,
offsets of groups. It is no broker of Apache Kafka: it has no TLS, SASL, rights or markers of
transactions, and keeps 5 MiB of a partition. `python -m tests.kafka_cluster`
serves one until its input ends.
"""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import confluent_kafka as ck
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

GIVEN = os.environ.get("EVENTHUB_TEST_KAFKA", "")
BROKERS = 2
_PRODUCER = 0  # of the kinds of clients
_PRODUCE, _FIND_COORDINATOR = 0, 10  # of the kinds of requests
_TOO_LARGE, _GROUP_REFUSED = 10, 30  # of the errors: MSG_SIZE_TOO_LARGE, GROUP_AUTHORIZATION_FAILED
_REFUSALS = 500  # more than a client asks
_TIMEOUT_S = 20.0
_KEPT_BYTES = 5 * 1024 * 1024  # of a partition of the mock cluster
_PIECE = 900_000
_PASSING = ("_TRANSPORT", "_ALL_BROKERS_DOWN")  # errors of connections, which are made again


class Record(NamedTuple):
    """A record that was read."""

    partition: int
    offset: int
    key: str | None
    value: bytes | None
    headers: dict[str, str]


class KafkaCluster:
    """The running cluster. `servers`: as in a URL."""

    def __init__(self, servers: str, process: "subprocess.Popen[str] | None") -> None:
        self.servers = servers
        self.url = f"kafka://{servers}"
        self._process = process
        self._config = {"bootstrap.servers": servers, "log_level": 0}
        self._producer = ck.Producer({**self._config, "linger.ms": 2, "acks": "all"})
        self._admin = AdminClient(self._config)  # retained: its requests end with it

    @property
    def is_mock(self) -> bool:
        return self._process is not None

    def topic(self, partitions: int = 4) -> str:
        """Create a topic; return its name."""
        name = f"orders-{uuid4().hex[:8]}"
        if self._process is not None:
            self._tell("create", name, str(partitions))
        else:
            made = self._admin.create_topics([NewTopic(name, partitions)])
            made[name].result(_TIMEOUT_S)
            until_s = time.monotonic() + _TIMEOUT_S
            for server in self.servers.split(","):
                while not self._is_known(name, server):
                    assert time.monotonic() < until_s, f"{server} does not know {name}"
        return name

    def produce(self, topic: str, records: Iterable[dict[str, Any]]) -> None:
        """Write records; return when all are acknowledged."""
        for record in records:
            self._producer.produce(topic, **record)
            self._producer.poll(0)
        assert self._producer.flush(_TIMEOUT_S) == 0

    def records(self, topic: str) -> list[Record]:
        """Return all records of a topic that are not of open or aborted transactions, by partition
        and offset.
        """
        more = {"group.id": "tests", "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = ck.Consumer({**self._config, **more})
        left = {*consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions}
        consumer.assign([ck.TopicPartition(topic, one, ck.OFFSET_BEGINNING) for one in left])
        found: list[Record] = []
        while left:
            message = consumer.poll(_TIMEOUT_S)
            assert message is not None, f"{topic} is not read to its end"
            error = message.error()
            if error is None:
                found.append(_record(message))
            elif error.name() == "_PARTITION_EOF":
                left.discard(message.partition())
            else:
                assert error.retriable() or error.name() in _PASSING, error
        consumer.close()
        return sorted(found, key=lambda record: record[:2])

    def committed(self, group: str, topic: str, partitions: int) -> list[int]:
        """Return the offsets that are committed to a group."""
        consumer = ck.Consumer({**self._config, "group.id": group})
        given = [ck.TopicPartition(topic, one) for one in range(partitions)]
        found = [one.offset for one in consumer.committed(given, timeout=_TIMEOUT_S)]
        consumer.close()
        return found

    def trim(self, topic: str) -> int:
        """Remove all records of partition 0, and some that are written before, but for the last
        ones; return the first offset.
        """
        pieces = _KEPT_BYTES // _PIECE + 2
        self.produce(topic, [{"value": b" " * _PIECE, "partition": 0} for _ in range(pieces)])
        consumer = ck.Consumer({**self._config, "group.id": "tests"})
        place = ck.TopicPartition(topic, 0)
        if self._process is None:
            _, high = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
            asked = self._admin.delete_records([ck.TopicPartition(topic, 0, high - 1)])
            next(iter(asked.values())).result(_TIMEOUT_S)
        low, _ = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
        consumer.close()
        return int(low)

    def refuse(self, topic: str) -> None:
        """Refuse the next records that are written to a topic, as too large."""
        if self._process is not None:
            self._tell("refuse")
        else:
            self._set(topic, "max.message.bytes", "1")

    def accept(self, topic: str) -> None:
        """Refuse nothing any more."""
        if self._process is None:
            self._set(topic, "max.message.bytes", str(_PIECE))

    @contextmanager
    def groups_refused(self) -> Iterator[None]:
        """Let no client know a group within the block, as one without the right to read it."""
        self._tell("refuse-groups")
        yield
        self._tell("accept-groups")

    def down(self) -> None:
        """Break all connections, and refuse new ones."""
        self._tell("down")

    def up(self) -> None:
        self._tell("up")

    def _is_known(self, topic: str, server: str) -> bool:
        """Ask one server, by a new client, which has no other yet."""
        client = AdminClient({**self._config, "bootstrap.servers": server})
        found = client.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
        return found.error is None and all(one.leader >= 0 for one in found.partitions.values())

    def _set(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        given = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([given])[given].result(_TIMEOUT_S)

    def _tell(self, *words: str) -> None:
        assert self._process is not None and self._process.stdin and self._process.stdout
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline().strip() == "0"


def _record(message: ck.Message) -> Record:
    headers = {name: value.decode() for name, value in message.headers() or ()}
    key = None if message.key() is None else message.key().decode()
    return Record(message.partition(), message.offset(), key, message.value(), headers)


@contextmanager
def kafka_cluster() -> Iterator[KafkaCluster]:
    """Start a cluster until the block is left, or use the one that is given."""
    if GIVEN:
        yield KafkaCluster(GIVEN, None)
        return
    argv = (sys.executable, "-m", "tests.kafka_cluster")
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        try:
            yield KafkaCluster(process.stdout.readline().strip(), process)
        finally:
            process.stdin.close()


def _serve() -> None:
    """Run a mock cluster; obey lines of input, each with a line of output: 0 if it was done."""
    folder = Path(ck.__file__).parents[1] / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(folder.glob("librdkafka-*.so*"))))
    for name in ("conf_new", "new", "mock_cluster_new", "mock_cluster_bootstraps"):
        getattr(library, f"rd_kafka_{name}").restype = ctypes.c_void_p
    words = ctypes.create_string_buffer(512)
    config = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(config, b"log_level", b"0", words, ctypes.c_size_t(512))
    client = ctypes.c_void_p(library.rd_kafka_new(_PRODUCER, config, words, ctypes.c_size_t(512)))
    cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(client, BROKERS))
    servers = ctypes.c_char_p(library.rd_kafka_mock_cluster_bootstraps(cluster)).value
    print((servers or b"").decode(), flush=True)
    for line in sys.stdin:
        match line.split():
            case ["create", name, partitions]:
                answer = library.rd_kafka_mock_topic_create(
                    cluster, name.encode(), int(partitions), BROKERS
                )
            case ["down" | "up" as state]:
                change = getattr(library, f"rd_kafka_mock_broker_set_{state}")
                answer = max(change(cluster, number + 1) for number in range(BROKERS))
            case ["refuse"]:
                too_large = (ctypes.c_int * 1)(_TOO_LARGE)
                library.rd_kafka_mock_push_request_errors_array(
                    cluster, ctypes.c_int16(_PRODUCE), ctypes.c_size_t(1), too_large
                )
                answer = 0
            case ["refuse-groups"]:
                refused = (ctypes.c_int * _REFUSALS)(*[_GROUP_REFUSED] * _REFUSALS)
                library.rd_kafka_mock_push_request_errors_array(
                    cluster, ctypes.c_int16(_FIND_COORDINATOR), ctypes.c_size_t(_REFUSALS), refused
                )
                answer = 0
            case ["accept-groups"]:
                library.rd_kafka_mock_clear_request_errors(
                    cluster, ctypes.c_int16(_FIND_COORDINATOR)
                )
                answer = 0
            case _:
                answer = -1
        print(answer, flush=True)


if __name__ == "__main__":
    _serve()
