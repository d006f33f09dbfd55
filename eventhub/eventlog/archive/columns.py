"""Events as Parquet columns for filtering, in addition to the stored bytes. Plain module.

Attributes are typed by each value, in one struct per type, so files with different names, or one
name with different types, never conflict in a common schema.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
from google.protobuf.message import DecodeError

from eventhub.base import limits
from eventhub.event import event_pb2
from eventhub.eventlog.errors import SegmentUnreadable

TIME = pa.timestamp("us", tz="UTC")
KINDS = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_()}
_KIND_OF: dict[type, str] = {int: "int", float: "float", str: "text", bool: "bool"}
_INT_MAX = (1 << 63) - 1

Names = dict[str, list[str]]  # of attributes, by kind, in order
_Values = dict[tuple[str | None, str], list[Any]]  # by kind and name
_Shape = tuple[tuple[str, ...], tuple[type, ...]]  # names of an event's attributes, and their types


class EventProducer(NamedTuple):
    """The producer in an event's id, and its number."""

    client: str
    incarnation: int
    number: int


class Decoded(NamedTuple):
    """A page of events as columns, and their producers."""

    batch: pa.RecordBatch
    producers: list[EventProducer]


class _Count:
    """The number of events of a shape, and the names of its integers."""

    __slots__ = ("events", "integers")

    def __init__(self, integers: list[str]) -> None:
        self.events = 0
        self.integers = integers


class NameCount:
    """Counts the names of attributes by kind, to choose those that get a column.

    Events are counted by shape first: most events of a stream have one of a few shapes.
    """

    def __init__(self) -> None:
        self._shapes: dict[_Shape, _Count] = {}
        self._counts: Counter[tuple[str | None, str]] = Counter()  # of (kind, name)
        self._large: set[str] = set()  # names with an integer that no column can hold

    def add(self, payloads: Iterable[bytes]) -> None:
        """Count the attributes of events. Raises SegmentUnreadable."""
        with _explained():
            for payload in payloads:
                self._add(_attributes(payload))

    def _add(self, attributes: dict[str, Any]) -> None:
        shape = _shape(attributes)
        count = self._shapes.get(shape)
        if count is None:
            if len(self._shapes) == limits.ARCHIVE_SHAPES_MAX:
                self._fold()
            integers = [name for name, kind in zip(*shape, strict=True) if kind is int]
            count = self._shapes[shape] = _Count(integers)
        count.events += 1
        for name in count.integers:
            if attributes[name] > _INT_MAX:
                self._large.add(name)

    def _fold(self) -> None:
        """Convert shapes to names. Beyond the limit, new names get no column."""
        for (names, kinds), count in self._shapes.items():
            for key in zip(map(_KIND_OF.get, kinds), names, strict=True):
                if key[0] and (key in self._counts or len(self._counts) < limits.ARCHIVE_NAMES_MAX):
                    self._counts[key] += count.events
        self._shapes.clear()
        self._large.intersection_update(name for kind, name in self._counts if kind == "int")

    def chosen(self) -> Names:
        """Return the most frequent names, deterministically. Of names that differ only in case it
        chooses one, because many readers do not distinguish them.
        """
        self._fold()
        counted = [(-count, kind, name) for (kind, name), count in self._counts.items() if kind]
        seen: set[tuple[str, str]] = set()
        names: Names = {kind: [] for kind in KINDS}
        for _, kind, name in sorted(counted):
            if len(seen) == limits.ARCHIVE_ATTRIBUTES_MAX:
                break
            if self._fits(kind, name) and (kind, name.casefold()) not in seen:
                seen.add((kind, name.casefold()))
                names[kind].append(name)
        return {kind: sorted(found) for kind, found in names.items() if found}

    def _fits(self, kind: str, name: str) -> bool:
        """Return whether a column can hold every value of its kind; otherwise a filter would miss
        events.
        """
        if kind == "int" and name in self._large:
            return False
        return name.isprintable() and 0 < len(name) <= limits.NAME_CHARS_MAX


def schema(names: Names) -> pa.Schema:
    """Return the columns of a file in which attributes of these names are typed."""
    text = ("domain", "type", "name", "version", "source", "key", "node")
    structs = [
        pa.field(f"attributes_{kind}", pa.struct([(name, KINDS[kind]) for name in found]))
        for kind, found in names.items()
    ]
    return pa.schema(
        [
            pa.field("sequence", pa.int64(), nullable=False),
            pa.field("appended_at", TIME, nullable=False),
            pa.field("mask", pa.uint64(), nullable=False),
            pa.field("payload", pa.binary(), nullable=False),
            *((name, pa.string()) for name in text),
            ("priority", pa.int32()),
            ("time", TIME),
            ("expires_at", TIME),
            ("correlation", pa.string()),
            ("cause", pa.string()),
            ("producer_client", pa.string()),
            ("producer_incarnation", pa.int64()),
            ("producer_number", pa.int64()),
            ("text_id", pa.string()),
            ("attributes", pa.string()),
            *structs,
        ]
    )


def decoded(page: pa.Table, names: Names) -> Decoded:
    """Decode a non-empty page of (sequence, appended_at, mask, payload) to the columns of
    `schema(names)`. Raises SegmentUnreadable.
    """
    with _explained():
        rows, producers = _rows(page.column("payload").to_pylist())
        values = list(zip(*rows, strict=True))
        typed = _typed(columns_of(values[-1], names), names)
    columns: dict[str, Any] = {
        "sequence": page.column("sequence").combine_chunks(),
        "appended_at": page.column("appended_at").combine_chunks(),
        "mask": page.column("mask").combine_chunks().view(pa.uint64()),
        "payload": page.column("payload").combine_chunks(),
        **dict(zip(_ROW, values, strict=True)),
        **typed,
    }
    parquet_schema = schema(names)
    arrays = [_array(columns[field.name], field.type) for field in parquet_schema]
    return Decoded(pa.RecordBatch.from_arrays(arrays, schema=parquet_schema), producers)


def columns_of(texts: Sequence[bytes], names: Names) -> _Values:
    """Return the values of the named attributes, null where an event has none of that kind."""
    columns: _Values = {
        (kind, name): [None] * len(texts) for kind, found in names.items() for name in found
    }
    plans: dict[_Shape, list[tuple[str, list[Any]]]] = {}  # where the values of a shape go
    for at, text in enumerate(texts):
        attributes = orjson.loads(text)
        shape = _shape(attributes)
        plan = plans.get(shape)
        if plan is None:
            keys = zip(map(_KIND_OF.get, shape[1]), shape[0], strict=True)
            plan = plans[shape] = [(key[1], columns[key]) for key in keys if key in columns]
        for name, column in plan:
            column[at] = attributes[name]
    return columns


# The columns that are in the stored bytes, in the order of `_rows`.
_ROW = (
    *("domain", "type", "name", "version", "source", "key", "node", "priority", "time"),
    *("expires_at", "correlation", "cause", "producer_client", "producer_incarnation"),
    *("producer_number", "text_id", "attributes"),
)


def _rows(payloads: Sequence[bytes]) -> tuple[list[tuple[Any, ...]], list[EventProducer]]:
    parse = event_pb2.Event.FromString
    rows: list[tuple[Any, ...]] = []
    producers: list[EventProducer] = []
    for payload in payloads:
        event = parse(payload)
        producer: tuple[Any, ...] = (None, None, None)
        if event.HasField("producer_id"):
            own = event.producer_id
            producer = EventProducer(own.client, own.incarnation, own.sequence)
            producers.append(producer)
        rows.append(
            (
                *(event.domain, event.type, event.name, event.version, event.source, event.key),
                *(event.node, event.priority, event.time_us or None, event.expires_at_us or None),
                *(event.correlation, event.cause, *producer, event.text_id or None),
                event.attributes or b"{}",
            )
        )
    return rows, producers


def _typed(values: _Values, names: Names) -> dict[str, pa.StructArray]:
    return {
        f"attributes_{kind}": pa.StructArray.from_arrays(
            [pa.array(values[kind, name], KINDS[kind]) for name in found], names=found
        )
        for kind, found in names.items()
    }


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if kind == TIME:
        return pa.array(values, pa.int64()).view(TIME)
    return pa.array(values, kind)


def _attributes(payload: bytes) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(event_pb2.Event.FromString(payload).attributes or b"{}")
    return found


def _shape(attributes: dict[str, Any]) -> _Shape:
    return tuple(attributes), tuple(map(type, attributes.values()))


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (DecodeError, orjson.JSONDecodeError) as error:
        raise SegmentUnreadable(f"An event of the segment cannot be decoded: {error}") from error
