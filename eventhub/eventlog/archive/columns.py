"""Events as columns: what readers of Parquet filter by, beside the stored bytes. Plain.

Attributes are typed by what each value is, in one struct per type, so that files with different
names, or one name with different types, never conflict in a common schema.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
from google.protobuf.message import DecodeError

from eventhub import limits
from eventhub.event import event_pb2
from eventhub.eventlog.archive.errors import SegmentUnreadable

TIME = pa.timestamp("us", tz="UTC")
KINDS = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_()}
_KIND_OF = {int: "int", float: "float", str: "text", bool: "bool"}
_INT_MAX = (1 << 63) - 1
_TOO_LARGE = "large int"  # the kind of an integer that has 64 unsigned bits

Names = dict[str, list[str]]  # of attributes, by kind, in order


class Producer(NamedTuple):
    """Who made an event, by its own account, and its number."""

    client: str
    incarnation: int
    number: int


class Decoded(NamedTuple):
    """A page of events as columns, and their producers."""

    batch: pa.RecordBatch
    producers: list[Producer]


class NameCount:
    """Counts the names of attributes by kind, to choose those that get a column."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, payloads: Iterable[bytes]) -> None:
        """Raises SegmentUnreadable."""
        with _explained():
            for payload in payloads:
                self._add(_attributes(payload))

    def _add(self, attributes: dict[str, Any]) -> None:
        counts = self._counts
        for name, value in attributes.items():
            kind = _kind(value)
            if (kind, name) in counts:
                counts[kind, name] += 1
            elif kind and len(counts) < limits.ARCHIVE_NAMES_MAX:
                counts[kind, name] = 1

    def chosen(self) -> Names:
        """The most frequent names, the same for the same events; of names that differ in case only,
        one, because many readers take them for the same.
        """
        ranked = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        seen: set[tuple[str, str]] = set()
        names: Names = {kind: [] for kind in KINDS}
        for (kind, name), _ in ranked:
            if len(seen) == limits.ARCHIVE_ATTRIBUTES_MAX:
                break
            if self._fits(kind, name) and (kind, name.casefold()) not in seen:
                seen.add((kind, name.casefold()))
                names[kind].append(name)
        return {kind: sorted(found) for kind, found in names.items() if found}

    def _fits(self, kind: str, name: str) -> bool:
        """A column must hold every value of its kind, or who filters by it misses events."""
        if kind == _TOO_LARGE or (kind == "int" and (_TOO_LARGE, name) in self._counts):
            return False
        return name.isprintable() and 0 < len(name) <= limits.NAME_CHARS_MAX


def schema(names: Names) -> pa.Schema:
    """The columns of a file whose attributes of these names are typed."""
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
    """A page of (sequence, appended_at, mask, payload), not empty, with the columns of
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
    made = schema(names)
    arrays = [_array(columns[field.name], field.type) for field in made]
    return Decoded(pa.RecordBatch.from_arrays(arrays, schema=made), producers)


def columns_of(texts: Sequence[bytes], names: Names) -> dict[tuple[str, str], list[Any]]:
    """The values of the named attributes, null where an event has none of that kind."""
    columns = {(kind, name): [None] * len(texts) for kind, found in names.items() for name in found}
    for at, text in enumerate(texts):
        for name, value in orjson.loads(text).items():
            column = columns.get((_kind(value), name))
            if column is not None:
                column[at] = value
    return columns


# The columns that are in the stored bytes, in the order of `_rows`.
_ROW = (
    *("domain", "type", "name", "version", "source", "key", "node", "priority", "time"),
    *("expires_at", "correlation", "cause", "producer_client", "producer_incarnation"),
    *("producer_number", "text_id", "attributes"),
)


def _rows(payloads: Sequence[bytes]) -> tuple[list[tuple[Any, ...]], list[Producer]]:
    parse = event_pb2.Event.FromString
    rows: list[tuple[Any, ...]] = []
    producers: list[Producer] = []
    for payload in payloads:
        event = parse(payload)
        producer: tuple[Any, ...] = (None, None, None)
        if event.HasField("producer_id"):
            made = event.producer_id
            producer = Producer(made.client, made.incarnation, made.sequence)
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


def _typed(values: dict[tuple[str, str], list[Any]], names: Names) -> dict[str, pa.StructArray]:
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


def _kind(value: Any) -> str:
    """The kind of a value; "" for what has no column."""
    kind = _KIND_OF.get(type(value), "")
    return _TOO_LARGE if kind == "int" and value > _INT_MAX else kind


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (DecodeError, orjson.JSONDecodeError) as error:
        raise SegmentUnreadable(f"An event of the segment cannot be decoded: {error}") from error
