"""The look-up of an event in the match index: the keys that the event has. Plain module."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import xxhash

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy
from registrations.filters.values import fields_inside, number_of
from registrations.match_index.engines.text_lookup import (
    TextRecord,
    Wildcards,
    names_of,
    text_record,
)
from registrations.match_index.format import layout
from registrations.match_index.format.names import (
    SEED,
    Number,
    below_name,
    gate_name,
    number_order,
    path_name,
    raw,
    type_name,
    value_head,
    value_tail,
)
from registrations.match_index.format.shard import Shard

Span = tuple[int, int]
LOW = 1 << 32
OPENED = (dict, list, tuple)  # values that may have nested ones
_digest = xxhash.xxh64_intdigest


class PathRecord(NamedTuple):
    """The keys of the index for one path."""

    flags: int
    there: int  # the key that the path exists; 0: none
    member: int  # the key that it has a comparable value; 0: none
    head: bytes  # the beginning of the names of values
    text: TextRecord | None
    numbers: tuple[int, int, int]
    texts: tuple[int, int, int]
    intervals: tuple[int, int]  # the groups of intervals of numbers and of texts
    simple: bytes | None  # the beginning of the names of texts, if there are only value keys


class Lookup:
    """A shard with its look-up state. `present` has a byte for each key: 1 if the event has it."""

    def __init__(self, shard: Shard, hierarchy: TypeHierarchy) -> None:
        views, head = shard.views, shard.head
        self.shard, self.head, self.hierarchy = shard, head, hierarchy
        self.present = bytearray(head.keys + 1)
        self.path_records: dict[str, PathRecord | None] = {}
        self.table, self.names, self.name_at = views["table"], views["names"], views["name_at"]
        self.slot_mask, self.hash_mask = head.slots - 1, head.hash_mask
        self.numbers, self.ranks = views["numbers"], views["number_ranks"]
        self.rest_at, self.rest = views["rest_at"], views["rest"]
        self.implied_at, self.implied = views["implied_at"], views["implied"]
        self.wildcards = Wildcards(shard)

    def find(self, name: bytes) -> int:
        """Return the number of a name, or 0. The hash selects candidates; names are compared."""
        digest, table = _digest(name, SEED) & self.hash_mask, self.table
        at = digest & self.slot_mask
        while word := table[at]:
            if word ^ digest < LOW:  # the upper halves are equal
                number: int = word & (LOW - 1)
                if self.names[self.name_at[number] : self.name_at[number + 1]] == name:
                    return number
            at += 1
        return 0

    def record(self, path: str) -> PathRecord | None:
        """Return the record of a path; None if the index does not have it."""
        number = self.find(path_name(path))
        found = self._record(path, number) if number else None
        if len(path) > limits.INDEX_PATH_CACHED_CHARS_MAX:
            return found
        if len(self.path_records) >= limits.INDEX_PATHS_CACHED_MAX:
            self.path_records.clear()
        self.path_records[path] = found
        return found

    def _record(self, path: str, number: int) -> PathRecord:
        at = (number - self.head.named_end) * layout.PATH_WORDS
        record = self.shard.views["paths"][at : at + layout.PATH_WORDS].tolist()
        flags, there, member = record[:3]
        head, text = value_head(path), text_record(self.shard, path, record)
        only_values = flags == layout.HAS_VALUES and not there and not member
        simple = head + b"s" if only_values else None
        spans = tuple(record[5:8]), tuple(record[8:11])
        groups = record[19], record[20]
        return PathRecord(flags, there, member, head, text, *spans, groups, simple)


class Stab(NamedTuple):
    """A value, or the range of several, for the intervals of a group: in those whose lower bound is
    before the key `below`, and whose upper bound is `above` or after it.
    """

    group: int
    below: int
    above: int


class EventKeys(NamedTuple):
    """The keys of an event: single ones, ranges of thresholds, and values for intervals."""

    gates: list[int]
    keys: list[int]
    spans: list[Span]
    stabs: list[Stab]


# --- the hot loops ---


def mark_event(look: Lookup, event: Event) -> EventKeys | None:
    """Mark the keys of an event in `present`; return None, and mark none, if it passes no gate."""
    gates = gates_of_event(look, event)
    if not gates:
        return None
    present, path_records = look.present, look.path_records
    marked = EventKeys(gates, [0], [], [])
    for gate in gates:
        present[gate] = 1
    for path, value in event.attributes.items():
        record = path_records[path] if path in path_records else look.record(path)
        if record is None:
            continue
        if value.__class__ is str and record.simple is not None:
            mark_name(look, record.simple + raw(value), marked)
        else:
            mark_value(look, record, value, marked)
            if record.flags & layout.IS_OPENED and isinstance(value, OPENED) and "." not in path:
                mark_inside(look, path, value, event.attributes, marked)
    if look.head.flags:
        mark_types(look, event, marked)
    return marked


def unmark(look: Lookup, marked: EventKeys) -> None:
    """Clear the marks."""
    present = look.present
    for gate in marked.gates:
        present[gate] = 0
    for key in marked.keys:
        present[key] = 0
    for first, end in marked.spans:
        present[first:end] = bytes(end - first)


def gates_of_event(look: Lookup, event: Event) -> list[int]:
    """Return the gates that the event passes, of the forms in the index."""
    forms, found = look.head.gate_forms, []
    asked: list[tuple[int, str | None]] = [(form, None) for form in range(4) if forms >> form & 1]
    if forms & 0xF0 and event.application:
        several = dict.fromkeys(event.application)
        asked += [(form, one) for form in range(4) if forms >> form & 16 for one in several]
    for form, application in asked:
        domain, type = event.domain if form & 1 else None, event.type if form & 2 else None
        number = look.find(gate_name(domain, type, application))
        if number:
            found.append(number)
    return found


def mark_value(look: Lookup, record: PathRecord, value: Any, marked: EventKeys) -> None:
    """Mark the keys of the value at a path."""
    flags = record.flags
    if record.there:
        mark(look, record.there, marked)
    members = members_of(value)
    if not members:
        return
    if record.member:
        mark(look, record.member, marked)
    if flags & layout.HAS_VALUES:
        for one in members:
            tail = value_tail(one)
            if tail is not None:
                mark_name(look, record.head + tail, marked)
    if record.text is not None:
        mark_text_keys(look, record.text, members, marked)
    if flags & layout.HAS_NUMBERS:
        mark_numbers(look, record, members, marked)
    if flags & layout.HAS_TEXTS:
        mark_texts(look, record, members, marked)


def members_of(value: Any) -> Sequence[Any]:
    """Return the comparable values, as `values.members`."""
    if isinstance(value, list | tuple):
        return [one for one in value if not isinstance(one, dict | list)]
    return () if isinstance(value, dict) else (value,)


def mark_inside(
    look: Lookup, outer: str, inside: Any, attributes: dict[str, Any], marked: EventKeys
) -> None:
    """Mark the values in an object, or in the objects of a list, by dotted paths, each once; an
    attribute with the exact name goes first.
    """
    waiting = [(outer, inside)]
    while waiting:
        outer, inside = waiting.pop()
        for name, value in fields_inside(inside).items():
            path = f"{outer}.{name}"
            record = look.path_records[path] if path in look.path_records else look.record(path)
            if record is None or "." in name:
                continue
            if path not in attributes:
                mark_value(look, record, value, marked)
            if record.flags & layout.IS_OPENED and isinstance(value, OPENED):
                waiting.append((path, value))


def mark(look: Lookup, key: int, marked: EventKeys) -> None:
    if not look.present[key]:
        look.present[key] = 1
        marked.keys.append(key)


def mark_name(look: Lookup, name: bytes, marked: EventKeys) -> None:
    """Mark a key by its name, and the sets of alternatives that contain its value."""
    key = look.find(name)
    if not key or look.present[key]:
        return
    look.present[key] = 1
    marked.keys.append(key)
    if key < look.head.implying_end:
        mark_sets(look, key, marked)


def mark_sets(look: Lookup, key: int, marked: EventKeys) -> None:
    position = key - look.head.gates_end
    for one in look.implied[look.implied_at[position] : look.implied_at[position + 1]]:
        mark(look, one, marked)


def mark_text_keys(
    look: Lookup, record: TextRecord, members: Iterable[Any], marked: EventKeys
) -> None:
    """Mark the beginnings and ends of texts, and the wildcards that they fit."""
    for one in members:
        if not isinstance(one, str):
            continue
        data = raw(one)
        for name in names_of(record, one, data):
            mark_name(look, name, marked)
        if record.grams is not None:
            for key in look.wildcards.fitting(record.grams, data):
                mark(look, key, marked)


def mark_numbers(
    look: Lookup, record: PathRecord, members: Iterable[Any], marked: EventKeys
) -> None:
    """Mark the thresholds below the greatest of the numbers, and those above the least."""
    found = [number_order(one) for one in map(number_of, members) if one is not None]
    if found:
        low, middle, high = record.numbers
        below = number_position(look, max(found), low, middle)
        above = number_position(look, min(found), middle, high)
        mark_bounds(look, record.numbers, Stab(record.intervals[0], below, above), marked)


def mark_bounds(look: Lookup, span: tuple[int, int, int], stab: Stab, marked: EventKeys) -> None:
    mark_span(look, span[0], stab.below, marked)
    mark_span(look, stab.above, span[2], marked)
    marked.stabs.append(stab)


def number_position(look: Lookup, value: Number, low: int, high: int) -> int:
    """Return the first threshold from `low` on that is not below the value."""
    first = look.head.numbers_first
    low, high = low - first, high - first
    at = bisect_left(look.numbers, value[0], low, high)
    rank = 2 * value[1] + 1
    while at < high and look.numbers[at] == value[0] and look.ranks[at] < rank:
        at += 1
    return at + first


def mark_texts(look: Lookup, record: PathRecord, members: Iterable[Any], marked: EventKeys) -> None:
    found = [raw(one) for one in members if isinstance(one, str)]
    if found:
        low, middle, high = record.texts
        below = text_position(look, max(found), low, middle)
        above = text_position(look, min(found), middle, high)
        mark_bounds(look, record.texts, Stab(record.intervals[1], below, above), marked)


def text_position(look: Lookup, value: bytes, low: int, high: int) -> int:
    first = look.head.texts_first
    shard, ranks = look.shard, look.shard.views["text_ranks"]
    while low < high:
        middle = (low + high) // 2
        if (shard.text("text_at", "texts", middle - first), ranks[middle - first]) < (value, 1):
            low = middle + 1
        else:
            high = middle
    return low


def mark_span(look: Lookup, first: int, end: int, marked: EventKeys) -> None:
    if end > look.head.keys:
        raise IndexError
    if first < end:
        look.present[first:end] = b"\1" * (end - first)
        marked.spans.append((first, end))


def mark_types(look: Lookup, event: Event, marked: EventKeys) -> None:
    """Mark the event's type, its supertypes, and the names that they are below."""
    for type in look.hierarchy(event):
        mark_name(look, type_name(type), marked)
        at = type.find(".")
        while at >= 0:
            mark_name(look, below_name(type[:at]), marked)
            at = type.find(".", at + 1)
