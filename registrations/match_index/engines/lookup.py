"""What of an event the match index knows: which of its keys the event has. Plain module."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import xxhash

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy
from registrations.filters.values import fields_inside, number_of
from registrations.match_index.format import layout
from registrations.match_index.format.names import (
    SEED,
    Number,
    below_name,
    gate_name,
    number_order,
    path_name,
    prefix_head,
    raw,
    type_name,
    value_head,
    value_tail,
)
from registrations.match_index.format.shard import Shard

Span = tuple[int, int]
LOW = 1 << 32
OPENED = (dict, list, tuple)  # what has values by longer paths
_digest = xxhash.xxh64_intdigest


class Road(NamedTuple):
    """What is asked of the value at a path."""

    flags: int
    there: int  # keys, 0 for none
    member: int
    head: bytes  # of the names of values
    prefixes: bytes  # of the names of prefixes
    lengths: tuple[int, ...]
    numbers: tuple[int, int, int]
    texts: tuple[int, int, int]
    simple: bytes | None  # the names of texts begin so, if nothing but values is asked for


class Lookup:
    """A shard as it is asked. `present` has a byte for each key: 1 while an event has it."""

    def __init__(self, shard: Shard, hierarchy: TypeHierarchy) -> None:
        views, head = shard.views, shard.head
        self.shard, self.head, self.hierarchy = shard, head, hierarchy
        self.present = bytearray(head.keys + 1)
        self.roads: dict[str, Road | None] = {}
        self.table, self.names, self.name_at = views["table"], views["names"], views["name_at"]
        self.slot_mask, self.hash_mask = head.slots - 1, head.hash_mask
        self.numbers, self.ranks = views["numbers"], views["number_ranks"]
        self.rest_at, self.rest = views["rest_at"], views["rest"]
        self.implied_at, self.implied = views["implied_at"], views["implied"]

    def find(self, name: bytes) -> int:
        """The number of a name, or 0. The hash only says where it may be: names are compared."""
        digest, table = _digest(name, SEED) & self.hash_mask, self.table
        at = digest & self.slot_mask
        while word := table[at]:
            if word ^ digest < LOW:  # the upper halves are equal
                number: int = word & (LOW - 1)
                if self.names[self.name_at[number] : self.name_at[number + 1]] == name:
                    return number
            at += 1
        return 0

    def road(self, path: str) -> Road | None:
        """None if nobody asks for the path."""
        number = self.find(path_name(path))
        found = self._road(path, number) if number else None
        if len(path) > limits.INDEX_PATH_CACHED_CHARS_MAX:
            return found
        if len(self.roads) >= limits.INDEX_PATHS_CACHED_MAX:
            self.roads.clear()
        self.roads[path] = found
        return found

    def _road(self, path: str, number: int) -> Road:
        at = (number - self.head.named_end) * layout.PATH_WORDS
        record = self.shard.views["paths"][at : at + layout.PATH_WORDS].tolist()
        flags, there, member, first, end = record[:5]
        lengths = tuple(self.shard.views["lengths"][first:end].tolist())
        heads = value_head(path), prefix_head(path)
        only_values = flags == layout.HAS_VALUES and not there and not member
        simple = heads[0] + b"s" if only_values else None
        spans = tuple(record[5:8]), tuple(record[8:11])
        return Road(flags, there, member, *heads, lengths, *spans, simple)


class Seen(NamedTuple):
    """Of an event: single keys, and ranges of keys that are thresholds."""

    gates: list[int]
    keys: list[int]
    spans: list[Span]


# --- the hot loops ---


def see(look: Lookup, event: Event) -> Seen | None:
    """Mark in `present` what the event has; None, and nothing marked, if no gate lets it in."""
    gates = gates_seen(look, event)
    if not gates:
        return None
    present, roads = look.present, look.roads
    seen = Seen(gates, [0], [])
    for gate in gates:
        present[gate] = 1
    for path, value in event.attributes.items():
        road = roads[path] if path in roads else look.road(path)
        if road is None:
            continue
        if value.__class__ is str and road.simple is not None:
            mark_name(look, road.simple + raw(value), seen)
        else:
            see_value(look, road, value, seen)
            if road.flags & layout.IS_OPENED and isinstance(value, OPENED) and "." not in path:
                see_inside(look, path, value, event.attributes, seen)
    if look.head.flags:
        see_types(look, event, seen)
    return seen


def forget(look: Lookup, seen: Seen) -> None:
    """Undo the marks."""
    present = look.present
    for gate in seen.gates:
        present[gate] = 0
    for key in seen.keys:
        present[key] = 0
    for first, end in seen.spans:
        present[first:end] = bytes(end - first)


def gates_seen(look: Lookup, event: Event) -> list[int]:
    """The gates that the event passes, of the forms that there are."""
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


def see_value(look: Lookup, road: Road, value: Any, seen: Seen) -> None:
    """The keys that the value at a path has."""
    flags = road.flags
    if road.there:
        mark(look, road.there, seen)
    members = members_of(value)
    if not members:
        return
    if road.member:
        mark(look, road.member, seen)
    if flags & layout.HAS_VALUES:
        for one in members:
            tail = value_tail(one)
            if tail is not None:
                mark_name(look, road.head + tail, seen)
    if flags & layout.HAS_PREFIXES:
        see_prefixes(look, road, members, seen)
    if flags & layout.HAS_NUMBERS:
        see_numbers(look, road.numbers, members, seen)
    if flags & layout.HAS_TEXTS:
        see_texts(look, road.texts, members, seen)


def members_of(value: Any) -> Sequence[Any]:
    """What of a value is compared, as `values.members`."""
    if isinstance(value, list | tuple):
        return [one for one in value if not isinstance(one, dict | list)]
    return () if isinstance(value, dict) else (value,)


def see_inside(
    look: Lookup, outer: str, inside: Any, attributes: dict[str, Any], seen: Seen
) -> None:
    """The values in an object, or in the objects of a list, by dotted paths, each once; an exact
    name among the attributes comes first.
    """
    waiting = [(outer, inside)]
    while waiting:
        outer, inside = waiting.pop()
        for name, value in fields_inside(inside).items():
            path = f"{outer}.{name}"
            road = look.roads[path] if path in look.roads else look.road(path)
            if road is None or "." in name:
                continue
            if path not in attributes:
                see_value(look, road, value, seen)
            if road.flags & layout.IS_OPENED and isinstance(value, OPENED):
                waiting.append((path, value))


def mark(look: Lookup, key: int, seen: Seen) -> None:
    if not look.present[key]:
        look.present[key] = 1
        seen.keys.append(key)


def mark_name(look: Lookup, name: bytes, seen: Seen) -> None:
    """A key by its name, and the sets of alternatives that its value is in."""
    key = look.find(name)
    if not key or look.present[key]:
        return
    look.present[key] = 1
    seen.keys.append(key)
    if key < look.head.implying_end:
        mark_sets(look, key, seen)


def mark_sets(look: Lookup, key: int, seen: Seen) -> None:
    place = key - look.head.gates_end
    for one in look.implied[look.implied_at[place] : look.implied_at[place + 1]]:
        mark(look, one, seen)


def see_prefixes(look: Lookup, road: Road, members: Iterable[Any], seen: Seen) -> None:
    for data in [raw(one) for one in members if isinstance(one, str)]:
        for length in road.lengths:
            if length > len(data):
                break
            mark_name(look, road.prefixes + data[:length], seen)


def see_numbers(
    look: Lookup, span: tuple[int, int, int], members: Iterable[Any], seen: Seen
) -> None:
    """Thresholds below the greatest of the numbers, and those above the least."""
    found = [number_order(one) for one in map(number_of, members) if one is not None]
    if found:
        low, middle, high = span
        mark_span(look, low, number_place(look, max(found), low, middle), seen)
        mark_span(look, number_place(look, min(found), middle, high), high, seen)


def number_place(look: Lookup, value: Number, low: int, high: int) -> int:
    """The first threshold from `low` on that is not below the value."""
    first = look.head.numbers_first
    low, high = low - first, high - first
    at = bisect_left(look.numbers, value[0], low, high)
    rank = 2 * value[1] + 1
    while at < high and look.numbers[at] == value[0] and look.ranks[at] < rank:
        at += 1
    return at + first


def see_texts(look: Lookup, span: tuple[int, int, int], members: Iterable[Any], seen: Seen) -> None:
    found = [raw(one) for one in members if isinstance(one, str)]
    if found:
        low, middle, high = span
        mark_span(look, low, text_place(look, max(found), low, middle), seen)
        mark_span(look, text_place(look, min(found), middle, high), high, seen)


def text_place(look: Lookup, value: bytes, low: int, high: int) -> int:
    first = look.head.texts_first
    shard, ranks = look.shard, look.shard.views["text_ranks"]
    while low < high:
        middle = (low + high) // 2
        if (shard.text("text_at", "texts", middle - first), ranks[middle - first]) < (value, 1):
            low = middle + 1
        else:
            high = middle
    return low


def mark_span(look: Lookup, first: int, end: int, seen: Seen) -> None:
    if end > look.head.keys:
        raise IndexError
    if first < end:
        look.present[first:end] = b"\1" * (end - first)
        seen.spans.append((first, end))


def see_types(look: Lookup, event: Event, seen: Seen) -> None:
    """The event's type, those above it, and what these are below."""
    for type in look.hierarchy(event):
        mark_name(look, type_name(type), seen)
        at = type.find(".")
        while at >= 0:
            mark_name(look, below_name(type[:at]), seen)
            at = type.find(".", at + 1)
