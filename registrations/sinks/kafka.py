"""Topics of Kafka: each event becomes a record, acknowledged by all replicas that are in sync.
Plain module.

The producer is idempotent, so its own repetitions store nothing twice and keep the order. A batch
that is stored again, because its result was lost, is in the topic twice, with the same ids.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import orjson
from msgspec import UNSET, Meta, Struct, UnsetType

from eventhub.base import limits
from eventhub.event.cloudevents import STRUCTURED
from eventhub.event.inbound import JSON
from registrations.endpoints.certificates import describe
from registrations.kafka_client import KafkaAccess, KafkaClient, KafkaFault, open_client
from registrations.kafka_servers import KafkaTarget, parsed
from registrations.sinks.kind import SinkAnswer, SinkEvent, SinkFault, SinkKind, SinkSpec
from registrations.sinks.places import check_place, parse_place
from registrations.sinks.pointers import Pointer, path_of, value_at

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

_FORM = "Write kafkas://HOST:PORT,HOST:PORT, or kafka://… without TLS, with ?sasl=… if need be."
_FLUSHED = 0.9  # of the time of an attempt: the rest is for its end
_CODES = {
    "unreachable": "connection",
    "address_refused": "refused_address",
    "unknown_host": "unknown_host",
    "tls": "tls",
    "timeout": "timeout",
}
# errors of single records
_OF_RECORDS = frozenset(
    ("MSG_SIZE_TOO_LARGE", "INVALID_RECORD", "INVALID_MSG", "INVALID_TIMESTAMP")
)


class TopicSettings(Struct, forbid_unknown_fields=True):
    """The topic. `key`: a JSON pointer (RFC 6901) into the document of an event, by default the
    event's key; `ca`: the authorities that the servers are verified by, in PEM, instead of the
    machine's.
    """

    topic: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    key: Pointer | UnsetType = UNSET
    ca: Annotated[str, Meta(max_length=limits.ENDPOINT_PEM_CHARS_MAX)] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.ca is not UNSET:
            describe(self.ca)


class TopicRecord(NamedTuple):
    """A record to be written."""

    value: bytes
    key: bytes | None
    headers: list[tuple[str, bytes]]


class _Reports(NamedTuple):
    """What the servers reported of the records of a batch: offsets by partition, and errors."""

    stored: dict[int, list[int]]
    errors: "list[KafkaError]"

    def note(self, error: "KafkaError | None", message: "Message") -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.stored.setdefault(message.partition(), []).append(message.offset())


class TopicSink:
    """The topic of one endpoint, with a producer of its own."""

    def __init__(self, client: KafkaClient, settings: TopicSettings, timeout_s: float) -> None:
        self._client = client
        self._topic = settings.topic
        self._key = None if settings.key is UNSET else path_of(settings.key)
        self._timeout_s = timeout_s

    async def check(self) -> str:
        try:
            counts = await self._client.partitions([self._topic])
        except KafkaFault as fault:
            raise _fault(fault) from None
        return f"The topic {self._topic} has {counts[self._topic]} partitions."

    async def store(self, events: Sequence[SinkEvent]) -> SinkAnswer:
        most = limits.SINK_RECORD_BYTES_MAX
        if any(len(event.document) > most for event in events):
            text = f"A record of {most:,} bytes at most is written to Kafka."
            raise SinkFault("rejected", text, of_events=True)
        records = [record_of(event, self._key) for event in events]
        if self._client.is_look_due:
            await self.check()
        try:
            stored = await self._client.call(self._produce, records)
        except KafkaFault as fault:
            raise _fault(fault) from None
        lines = [
            f"partition {one}: {len(offsets)} records, the last is {max(offsets)}"
            for one, offsets in sorted(stored.items())
        ]
        return SinkAnswer(f"{len(records)} records to {self._topic}", "\n".join(lines))

    def close(self) -> None:
        self._client.close(_purge)

    def _produce(
        self, producer: "Producer", records: Sequence[TopicRecord]
    ) -> dict[int, list[int]]:
        """Write records, and wait until they are acknowledged. Raises SinkFault, KafkaFault,
        KafkaException.
        """
        reports = _Reports({}, [])
        for value, key, headers in records:
            producer.produce(self._topic, value, key, headers=headers, on_delivery=reports.note)
        left = producer.flush(self._timeout_s * _FLUSHED)
        if left or reports.errors:
            self._client.require_usable()
        if left:
            text = f"{left} of {len(records)} records are not acknowledged in time."
            raise SinkFault("timeout", text)
        refused = [one for one in reports.errors if one.name() in _OF_RECORDS]
        if refused:
            raise SinkFault("rejected", refused[0].str(), of_events=True)
        if reports.errors:
            raise self._client.fault_of(reports.errors[0])
        return reports.stored


def record_of(event: SinkEvent, key: Sequence[str] | None) -> TopicRecord:
    """Return the record of an event; `key`: the path to its key, None: that of the event."""
    document = orjson.loads(event.document)
    if "specversion" in document:  # a CloudEvent
        own, name, media_type = document, "subject", STRUCTURED
        sequence = document.get("eventhubcursor", "").rpartition(":")[2]
        place = {"stream": document.get("eventhubstream"), "sequence": sequence}
    else:
        own, name, media_type = document.get("event", {}), "key", JSON
        place = {each: document.get(each) for each in ("stream", "sequence")}
    facts = {"delivery": event.id, **place, "type": own.get("type"), "id": own.get("id")}
    headers = [("content-type", media_type.encode())]
    headers += [(f"eventhub-{each}", _bytes(value)) for each, value in facts.items()
                if value is not None]  # fmt: skip
    found = own.get(name) if key is None else value_at(document, key)
    return TopicRecord(event.document, None if found is None else _bytes(found), headers)


def _bytes(value: Any) -> bytes:
    """Return a text as it is, and other values as JSON."""
    return value.encode() if isinstance(value, str) else orjson.dumps(value)


def _fault(fault: KafkaFault) -> SinkFault:
    return SinkFault(_CODES.get(fault.code, "rejected"), fault.detail)


def _purge(producer: "Producer") -> None:
    """Forget the records of a call that was given up, so that the end waits for nobody."""
    producer.purge()
    producer.flush(0)


async def open_topic(spec: SinkSpec) -> TopicSink:
    """Find the cluster and the topic. Raises SinkFault."""
    settings: TopicSettings = spec.settings
    given = spec.authentication
    target = _place(spec.url)._replace(
        user=given.get("username", ""), password=given.get("password", "")
    )
    ca = "" if settings.ca is UNSET else settings.ca
    access = KafkaAccess(target, ca, spec.addresses, spec.resolve)
    try:
        client = await open_client(access, _producer, _CONFIGURATION)
    except KafkaFault as fault:
        raise _fault(fault) from None
    sink = TopicSink(client, settings, spec.timeout_s)
    try:
        await sink.check()
    except BaseException:
        sink.close()
        raise
    return sink


def _place(url: str) -> KafkaTarget:
    return parse_place(url, parsed, _FORM)


def _producer(config: dict[str, Any]) -> "Producer":
    # imported when the first sink needs it: it takes 13 MiB of a process
    import confluent_kafka as ck

    return ck.Producer(config)


_CONFIGURATION = {
    "enable.idempotence": True,
    "acks": "all",
    "message.timeout.ms": 0,  # an attempt has a time of its own
    "message.max.bytes": limits.SINK_RECORD_BYTES_MAX + 4_096,
    "queue.buffering.max.kbytes": 4 * limits.SINK_RECORD_BYTES_MAX // 1024,
    "linger.ms": 0,
    "partitioner": "murmur2_random",  # as Java's clients choose partitions
}
KIND = SinkKind(
    "kafka",
    "Records of a Kafka topic",
    ("kafka", "kafkas"),
    TopicSettings,
    partial(check_place, parse=_place),
    ("basic",),
    (),
    False,
    {"ordered": True, "batch_events_max": limits.SINK_RECORDS_DEFAULT},
    {"format": ("native", "cloudevents_structured")},
    open_topic,
    needs_authentication=False,
)
