"""The assembly of entries into the sections of a shard, which docs/match-index.md describes.
Plain module.

The same entries give the same bytes, in any order.
"""

from collections.abc import Mapping
from typing import NamedTuple

from registrations.match_index.format import layout
from registrations.match_index.format.columns import NEVER, NOT, NUMBER, TEST, EntryColumns
from registrations.match_index.format.conjunctions import (
    EVERY,
    Entries,
    IndexedConjunctions,
    grouped,
    indexed,
    weights_of,
)
from registrations.match_index.format.intervals import groups_of, thresholds_of, tree_of
from registrations.match_index.format.layout import ShardHeader
from registrations.match_index.format.lazy_numpy import np
from registrations.match_index.format.names import hash_of, raw
from registrations.match_index.format.numbering import Numbering, numbered, rank_of
from registrations.match_index.format.path_records import path_records
from registrations.match_index.format.ragged import Array, sorted_rows, starts_of
from registrations.match_index.format.terms import Key, PathExists, Test, TypeKey

Sections = dict[str, Array]


class AssembledShard(NamedTuple):
    """A shard before it is written to a file. `head.hash_mask` has all bits, except in tests."""

    head: ShardHeader
    sections: Sections


def assemble(columns: EntryColumns, hash_mask: int) -> AssembledShard:
    """Assemble a shard. Raises ValueError for more than 2**31 entries, keys or words."""
    used, entries = _final(columns)
    groups = [*grouped(entries)]
    thresholds = thresholds_of(used.numbering)
    anchors = np.array([used.anchor_of(test) for test in used.tests], np.int64)
    weights = weights_of(groups, thresholds, used.numbering.end, anchors)
    placed = indexed(groups, weights, len(entries.ids))
    runs = _runs(placed, used.numbering.end + len(thresholds.spans))
    intervals = placed.access >= used.numbering.end
    dense = _dense(placed, entries.ids, columns.extra)
    paths = path_records(used.numbering, used.number_of)
    named = _named(used.numbering, paths.names, hash_mask)
    sections = {
        **named,
        **paths.sections,
        **_implied(used),
        **_wildcards(used.numbering),
        **_thresholds(used.numbering),
        **runs,
        **tree_of(placed.lows[intervals], placed.highs[intervals])._asdict(),
        "rest_at": placed.rest_at.astype("<u4"),
        "rest": placed.rest.astype("<u4"),
        **dense,
        **_blobs("test_at", "tests", [raw(test.text) for test in used.tests]),
        "anchors": anchors.astype("<u4"),
    }
    return AssembledShard(_head(used, sections, hash_mask, len(paths.names)), sections)


class _NumberedTerms(NamedTuple):
    """The keys and tests of the entries, numbered."""

    numbering: Numbering
    tests: list[Test]  # by their texts
    number_of: dict[Key, int]

    def anchor_of(self, test: Test) -> int:
        return EVERY if test.anchor is None else self.number_of[PathExists(test.anchor, False)]


def _final(columns: EntryColumns) -> tuple[_NumberedTerms, Entries]:
    """Return the entries with the numbers of the file."""
    words = columns.words
    is_test = words >= TEST
    number = words & NUMBER
    keys_used = np.unique(number[~is_test])
    tests_used = np.unique(number[is_test])
    gates_used = np.unique(columns.gates)
    tests = sorted(columns.tests[at] for at in tests_used)
    keys = {key for at in keys_used if (key := columns.keys[at]) is not None}
    keys |= {PathExists(test.anchor, False) for test in tests if test.anchor is not None}
    numbering = numbered({columns.gate_names[at] for at in gates_used}, keys)
    used = _NumberedTerms(numbering, tests, numbering.number_of())
    of_key = np.zeros(len(columns.keys) + 1, np.uint32)
    for at in keys_used:
        key = columns.keys[at]
        of_key[at] = NEVER if key is None else used.number_of[key]
    test_number = {test: at for at, test in enumerate(tests)}
    of_test = np.zeros(len(columns.tests) + 1, np.uint32)
    for at in tests_used:
        of_test[at] = test_number[columns.tests[at]]
    gate_number = {name: at for at, name in enumerate(numbering.gates, 2)}
    of_gate = np.array([gate_number.get(name, 0) for name in columns.gate_names] or [0], np.uint32)
    flag = words & np.uint32(NOT | TEST)
    final = np.where(is_test, of_test[number * is_test], of_key[number * ~is_test]) | flag
    lengths, final = sorted_rows(columns.offsets, final)
    return used, Entries(columns.ids, of_gate[columns.gates], lengths, final)


def _runs(placed: IndexedConjunctions, keys: int) -> Sections:
    """Build the runs; a run has all conjunctions of one access key and gate."""
    count = len(placed.access)
    first = np.ones(count, bool)
    first[1:] = (placed.access[1:] != placed.access[:-1]) | (placed.gates[1:] != placed.gates[:-1])
    begins = np.flatnonzero(first)
    key_runs = np.searchsorted(placed.access[begins], np.arange(keys + 1))
    return {
        "key_runs": key_runs.astype("<u4"),
        "run_gates": placed.gates[begins].astype("<u4"),
        "run_conjunctions": np.append(begins, count).astype("<u4"),
    }


def _dense(placed: IndexedConjunctions, ids: Array, extra: Mapping[str, Array]) -> Sections:
    """Order the ids by conjunction, ascending in each, so that a match is one copy."""
    order = np.lexsort((ids, placed.of_entry))
    of, sorted_ids = placed.of_entry[order], ids[order]
    first = np.ones(len(order), bool)
    first[1:] = (of[1:] != of[:-1]) | (sorted_ids[1:] != sorted_ids[:-1])
    order, of, sorted_ids = order[first], of[first], sorted_ids[first]
    counts = np.bincount(of, minlength=len(placed.access))
    by_id = np.argsort(sorted_ids, kind="stable")
    again = np.zeros(len(order), bool)
    again[1:] = sorted_ids[by_id][1:] == sorted_ids[by_id][:-1]
    again[:-1] |= again[1:]
    dense_at = starts_of(counts).astype("<u4")
    dense_at[np.unique(of[by_id[again]])] |= np.uint32(layout.SHARED)
    return {
        "dense_at": dense_at,
        "ids": sorted_ids.astype("<i8"),
        "by_id": by_id.astype("<u4"),
        **{
            layout.EXTRA + name: np.asarray(values)[order].astype("<i8")
            for name, values in extra.items()
        },
    }


def _named(numbering: Numbering, paths: list[bytes], hash_mask: int) -> Sections:
    """Build the names and their hash table (linear probing from the slot of the hash)."""
    names = [*numbering.names(), *paths]
    hashes = np.fromiter((hash_of(name) & hash_mask for name in names), np.uint64, len(names))
    numbers = np.arange(2, len(names))
    slots = slots_of(len(names))
    home = (hashes[2:] & np.uint64(slots - 1)).astype(np.int64)
    order = np.lexsort((numbers, home))
    ahead = np.arange(len(order))
    position = np.maximum.accumulate(home[order] - ahead) + ahead
    table = np.zeros(max(slots, int(position[-1]) + 1 if len(position) else 0) + 1, "<u8")
    high = hashes[2:][order] & np.uint64(0xFFFFFFFF00000000)
    table[position] = high | numbers[order].astype(np.uint64)
    return {"table": table, **_blobs("name_at", "names", names)}


def slots_of(names: int) -> int:
    """Return the number of slots; a quarter to a half of them are used."""
    return 1 << max(4, (2 * names).bit_length())


def _implied(used: _NumberedTerms) -> Sections:
    """Build what each gram and value leads to: wildcards; sets of alternatives."""
    numbering = used.numbering
    names = [*numbering.grams, *(value.name for value in numbering.implying)]
    position = {name: at for at, name in enumerate(names)}
    found: list[list[int]] = [[] for _ in position]
    for one in numbering.sets:
        for name in one.names:
            found[position[name]].append(used.number_of[one])
    for number, gram in enumerate(numbering.wildcards.values(), numbering.wildcards_first):
        found[position[gram]].append(number)
    flat = [number for numbers in found for number in numbers]
    return {
        "implied_at": starts_of(np.array([*map(len, found)], np.int64)).astype("<u4"),
        "implied": np.array(flat, "<u4"),
    }


def _wildcards(numbering: Numbering) -> Sections:
    parts = [wildcard.parts for wildcard in numbering.wildcards]
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    return {
        "wildcard_at": starts_of(lengths).astype("<u4"),
        **_blobs("part_at", "parts", [part for each in parts for part in each]),
    }


def _thresholds(numbering: Numbering) -> Sections:
    numbers, texts = numbering.numbers, numbering.texts
    return {
        "numbers": np.array([key.than[0] for key in numbers], "<f8"),
        "number_ranks": np.array([2 * key.than[1] + rank_of(key) for key in numbers], "<u2"),
        **_blobs("text_at", "texts", [key.than for key in texts]),
        "text_ranks": np.array([rank_of(key) for key in texts], np.uint8),
    }


def _blobs(at: str, name: str, blobs: list[bytes]) -> Sections:
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    return {
        at: starts_of(lengths).astype("<u4"),
        name: np.frombuffer(b"".join(blobs), np.uint8),
    }


def _head(used: _NumberedTerms, sections: Sections, hash_mask: int, paths: int) -> ShardHeader:
    numbering, ids = used.numbering, sections["ids"]
    if max(len(ids), len(sections["rest"]), len(sections["names"])) > layout.POSITION:
        raise ValueError("A shard has at most 2**31 entries, words and bytes of names.")
    return ShardHeader(
        hash_mask=hash_mask,
        entries=len(ids),
        ids=len(np.unique(ids)),
        gates_end=numbering.gates_end,
        implying_end=numbering.implying_end,
        named_end=numbering.named_end,
        wildcards_first=numbering.wildcards_first,
        numbers_first=numbering.numbers_first,
        texts_first=numbering.texts_first,
        keys=numbering.end,
        paths=paths,
        conjunctions=len(sections["rest_at"]) - 1,
        intervals=len(sections["lows"]),
        interval_groups=len(groups_of(numbering)),
        runs=len(sections["run_gates"]),
        tests=len(used.tests),
        rest=len(sections["rest"]),
        slots=slots_of(numbering.named_end + paths),
        gate_forms=_gate_forms(numbering.gates),
        flags=int(any(isinstance(key, TypeKey) for key in numbering.named)),
    )


def _gate_forms(gates: list[bytes]) -> int:
    """Return the combinations of a domain, a type and an application that gates have, as bits."""
    found = 0
    for name in gates:
        form, rest = 0, name[1:]
        for bit in range(3):
            if rest.startswith(b"*"):
                rest = rest[1:]
                continue
            length, _, rest = rest.partition(b":")
            rest = rest[int(length) :]
            form |= 1 << bit
        found |= 1 << form
    return found
