"""Topics of Kafka: each record becomes an event. Plain module.

A position is the JSON {topic: [offset of partition 0, of partition 1, …]} of the records that are
read next. It alone counts: all partitions are assigned by hand, so that there is no rebalancing,
and the offsets that are committed to a group of consumers show others how far the hub is.
"""

import time
from asyncio import Semaphore
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
from msgspec import Meta, Struct

from eventhub.base import limits
from registrations.connectors.errors import ConnectorFault
from registrations.connectors.kinds.kafka_records import USUAL, row_of
from registrations.connectors.kinds.kind import ConnectorKind, InputSpec
from registrations.connectors.rows import InputBatch, InputRow, LostRows
from registrations.endpoints.certificates import describe
from registrations.kafka_client import KafkaAccess, KafkaClient, KafkaFault, open_client
from registrations.kafka_servers import address_of, parse_target

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

Topic = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
Place = tuple[str, int]  # a topic, a partition
Offsets = dict[str, list[int]]  # by topic, of each partition
_EARLIEST, _LATEST = -2, -1  # in place of a time, of Kafka's request for offsets
_LASTING = frozenset(("address_refused", "no_topic", "not_permitted"))
_CODES = {"timeout": "unreachable", "unknown_host": "unreachable", "failed": "cluster_failed"}
# errors of connections, which are made again, and of the group, which only shows others an offset
_PASSING = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "GROUP_", "COORDINATOR_", "NOT_COORD")
_places_left = Semaphore(limits.CONNECTOR_KAFKA_MAX)


class KafkaSettings(Struct, forbid_unknown_fields=True):
    """The topics. `group`: of consumers, to which offsets are committed, `eventhub-` and the
    connector's id by default; `start`: where the connector begins, `group`: at the offsets that
    were committed to it; `ca`: the authorities that the servers are verified by, in PEM, instead of
    the machine's.
    """

    topics: Annotated[list[Topic], Meta(min_length=1, max_length=limits.CONNECTOR_TOPICS_MAX)]
    group: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX, pattern=r"^[!-~]*$")] = ""
    start: Literal["earliest", "latest", "group"] = "earliest"
    content_type: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX)] = ""
    ca: Annotated[str, Meta(max_length=limits.ENDPOINT_PEM_CHARS_MAX)] = ""

    def __post_init__(self) -> None:
        if len({*self.topics}) < len(self.topics):
            raise ValueError("A topic is named twice")
        if self.ca:
            describe(self.ca)


class KafkaTopics:
    """The topics of one connector."""

    def __init__(
        self, client: KafkaClient, settings: KafkaSettings, counts: dict[str, int]
    ) -> None:
        self._client = client
        self._settings = settings
        self._counts = counts  # of partitions
        self._is_assigned = False
        self._position = ""  # before the rows
        self._rows: deque[InputRow] = deque()
        self._offsets: Offsets = {}  # after the rows
        self._committed = ""
        self._committed_at_s = 0.0

    async def start(self) -> str:
        """Return the position of a connector that has none."""
        if self._settings.start == "group":
            found = await self._client.call(_offsets_of_group, self._partitions())
        else:
            when = _LATEST if self._settings.start == "latest" else _EARLIEST
            found = await self._client.call(_offsets_at, self._partitions(), when)
        return _text(_by_topic(found))

    async def read(self, position: str) -> InputBatch:
        """Return the rows after a position: the one that was returned last, or one before it in the
        same batch. Raises KafkaFault, ConnectorFault.
        """
        self._drop(position)
        if not self._rows and not self._is_assigned:
            lost = await self._assign(position)
            if lost:
                return InputBatch([], _text(self._offsets), lost)
        if self._client.is_look_due:
            await self._look()
        if not self._rows:
            await self._client.call(self._take, position)
        found: list[InputRow] = []
        size = 0
        for row in self._rows:
            size += len(row.document or b"")
            if found and size > limits.CONNECTOR_BATCH_BYTES:
                break
            found.append(row)
        reached = _text(self._offsets)  # further, where no row is: at the end of a transaction
        return InputBatch(found, "" if found or reached == position else reached)

    async def lag(self, position: str) -> int | None:
        """Return how many records there are after a position; None: not known yet."""
        if not self._is_assigned:
            return None
        return await self._client.call(_lag, orjson.loads(position))

    def _drop(self, position: str) -> None:
        """Drop the rows up to a position."""
        while self._rows and self._position != position:
            self._position = self._rows.popleft().position
        self._position = position

    def _partitions(self) -> list[Place]:
        return [(topic, one) for topic, count in self._counts.items() for one in range(count)]

    async def _look(self) -> None:
        """Look at the cluster; new partitions are assigned when the rows are read."""
        counts = await self._client.partitions(self._settings.topics)
        if counts != self._counts:
            self._counts = _bounded(counts)
            self._is_assigned = False

    async def _assign(self, position: str) -> list[LostRows]:
        """Read on at a position, and from the first record of a partition that it does not have.
        If records were removed that had to be read, return them, and assign nothing.
        """
        stored: Offsets = orjson.loads(position)
        first = await self._client.call(_offsets_at, self._partitions(), _EARLIEST)
        last = await self._client.call(_offsets_at, self._partitions(), _LATEST)
        found: dict[Place, int] = {}
        lost: list[LostRows] = []
        for (topic, one), low in first.items():
            known = stored.get(topic, [])
            offset = known[one] if one < len(known) else low
            if offset > last[topic, one] or len(known) > self._counts[topic]:
                raise _ahead((topic, one))
            if offset < low:
                lost.append(LostRows(f"{topic}-{one}", offset, low - 1))
            found[topic, one] = max(offset, low)
        self._offsets = _by_topic(found)
        if not lost:
            await self._client.call(_read_from, found)
            self._is_assigned = True
        return lost

    def _take(self, consumer: "Consumer", position: str) -> None:
        """Turn the next records into rows, after a wait if there are none."""
        self._commit(consumer, position)
        first = consumer.poll(limits.CONNECTOR_POLL_S_MAX)
        self._client.require_usable()
        if first is None:
            return
        self._add(first)
        for message in consumer.consume(limits.CONNECTOR_ROWS_AT_ONCE - 1, 0):
            self._add(message)

    def _add(self, message: "Message") -> None:
        topic, one, offset = message.topic(), message.partition(), message.offset()
        error, own = message.error(), self._offsets.get(topic, [])
        if error is None:
            if offset >= own[one]:
                own[one] = offset + 1
                position = _text(self._offsets)
                self._rows.append(row_of(message, self._settings.content_type, position))
        elif error.name() == "_PARTITION_EOF":
            own[one] = max(own[one], offset)
        elif error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            self._is_assigned = False  # so that it is looked what is missing
        elif not (error.retriable() or error.name().startswith(_PASSING)):
            raise self._client.fault_of(error)

    def _commit(self, consumer: "Consumer", position: str) -> None:
        """Commit a position that is stored to the group, now and then; others alone need it."""
        now_s = time.monotonic()
        if position == self._committed or now_s < self._committed_at_s + limits.CONNECTOR_CONFIRM_S:
            return
        self._committed, self._committed_at_s = position, now_s
        with suppress(Exception):
            consumer.commit(offsets=_assigned(_placed(orjson.loads(position))), asynchronous=True)


def _offsets_at(consumer: "Consumer", places: Iterable[Place], when: int) -> dict[Place, int]:
    """Return the first or last offsets of partitions. Raises KafkaException."""
    given = _assigned(dict.fromkeys(places, when))
    return _found(consumer.offsets_for_times(given, timeout=limits.KAFKA_ANSWER_S_MAX))


def _offsets_of_group(consumer: "Consumer", places: Sequence[Place]) -> dict[Place, int]:
    """Return the offsets that are committed to the group, or the first ones of partitions without.
    Raises KafkaException.
    """
    import confluent_kafka as ck

    given = _assigned(dict.fromkeys(places, 0))
    try:
        found = _found(consumer.committed(given, timeout=limits.KAFKA_ANSWER_S_MAX))
    except ck.KafkaException:
        _require_group(consumer)
        raise
    missing = [place for place, offset in found.items() if offset < 0]
    return found | (_offsets_at(consumer, missing, _EARLIEST) if missing else {})


def _require_group(consumer: "Consumer") -> None:
    """Raise KafkaFault if the cluster refused to name the group's server: librdkafka asks for it
    until the time is over, and reports why only among the records, of which there are none yet.
    """
    while (message := consumer.poll(0)) is not None:
        error = message.error()
        if error is not None and error.name() == "GROUP_AUTHORIZATION_FAILED":
            text = "The user may not read the offsets of the group; grant it DESCRIBE and READ."
            raise KafkaFault("not_permitted", f"{text} {error.str()}")


def _lag(consumer: "Consumer", offsets: Offsets) -> int | None:
    """Count the records by what the last fetches found; None if there was none of a partition."""
    total = 0
    for place in _assigned(_placed(offsets)):
        _, high = consumer.get_watermark_offsets(place, cached=True)
        if high < 0:
            return None
        total += max(high - place.offset, 0)
    return min(total, limits.CONNECTOR_LAG_ROWS_MAX)


def _read_from(consumer: "Consumer", offsets: dict[Place, int]) -> None:
    consumer.assign(_assigned(offsets))


def _assigned(offsets: dict[Place, int]) -> "list[TopicPartition]":
    import confluent_kafka as ck

    return [ck.TopicPartition(*place, offset) for place, offset in offsets.items()]


def _found(given: "Iterable[TopicPartition]") -> dict[Place, int]:
    """Return the offsets of an answer. Raises KafkaException."""
    import confluent_kafka as ck

    found: dict[Place, int] = {}
    for one in given:
        if one.error is not None:
            raise ck.KafkaException(one.error)
        found[one.topic, one.partition] = one.offset
    return found


def _placed(offsets: Offsets) -> dict[Place, int]:
    return {
        (topic, one): offset
        for topic, several in offsets.items()
        for one, offset in enumerate(several)
    }


def _by_topic(found: dict[Place, int]) -> Offsets:
    offsets: Offsets = {}
    for (topic, _), offset in sorted(found.items()):
        offsets.setdefault(topic, []).append(offset)
    return offsets


def _text(offsets: Offsets) -> str:
    return orjson.dumps(offsets).decode()


def _bounded(counts: dict[str, int]) -> dict[str, int]:
    """Return the numbers of partitions. Raises ConnectorFault for too many."""
    most = limits.CONNECTOR_PARTITIONS_MAX
    if sum(counts.values()) > most:
        text = f"The topics have more than {most:,} partitions; read them by several connectors."
        raise ConnectorFault("too_many_partitions", text, is_lasting=True)
    return counts


def _ahead(place: Place) -> ConnectorFault:
    topic, one = place
    return ConnectorFault(
        "position_ahead",
        f"Partition {one} of {topic} ends before the position of the connector: the topic was"
        " created again, or its servers lost records. Create the connector again; see"
        " docs/connectors.md.",
        is_lasting=True,
    )


@asynccontextmanager
async def open_topics(spec: InputSpec) -> AsyncIterator[KafkaTopics]:
    """Find the cluster and the topics. Raises ConnectorFault, also for a KafkaFault inside the
    block.
    """
    settings: KafkaSettings = spec.settings
    if _places_left.locked():
        text = f"This process has {limits.CONNECTOR_KAFKA_MAX} connectors to Kafka already."
        raise ConnectorFault("too_many_connectors", text)
    async with _places_left:
        try:
            access = KafkaAccess(parse_target(spec.url), settings.ca, spec.addresses)
            client = await open_client(access, _consumer, _configuration(spec))
            try:
                counts = await client.partitions(settings.topics)
                yield KafkaTopics(client, settings, _bounded(counts))
            finally:
                client.close(_close)
        except KafkaFault as fault:
            code = _CODES.get(fault.code, fault.code)
            is_lasting = code in _LASTING
            raise ConnectorFault(code, fault.detail, is_lasting=is_lasting) from None


def _consumer(config: dict[str, Any]) -> "Consumer":
    # imported when the first connector needs it: it takes 13 MiB of a process
    import confluent_kafka as ck

    return ck.Consumer(config)


def _close(consumer: "Consumer") -> None:
    consumer.close()


def _configuration(spec: InputSpec) -> dict[str, Any]:
    return {
        "group.id": spec.settings.group or f"eventhub-{spec.connector_id}",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.max.bytes": limits.KAFKA_FETCH_BYTES,
        "fetch.queue.backoff.ms": 50,
        "queued.max.messages.kbytes": limits.KAFKA_QUEUED_KB,
    }


KIND = ConnectorKind(
    "kafka",
    "Records of Kafka topics",
    KafkaSettings,
    USUAL,
    address_of,
    open_topics,
)
