"""The records of paths in a shard, which docs/match-index.md describes: what the index has of each,
and where. Plain module.
"""

from collections.abc import Iterable
from typing import NamedTuple

from registrations.match_index.format import layout
from registrations.match_index.format.lazy_numpy import np
from registrations.match_index.format.names import path_name
from registrations.match_index.format.numbering import Numbering, paths_of, spans
from registrations.match_index.format.ragged import Array
from registrations.match_index.format.terms import Key, OneOf, PathExists, Value
from registrations.match_index.format.text_keys import (
    BITS_OF_WORD,
    BLOCK,
    FOLDED,
    FOLDED_PREFIX,
    FOLDED_SUFFIX,
    PREFIX,
    SUFFIX,
    TextKey,
    gram_bits,
    gram_head,
)
from registrations.matching.atoms import prefixes_of

_LENGTHS_AT = {PREFIX: 3, SUFFIX: 11, FOLDED_PREFIX: 13, FOLDED_SUFFIX: 15, BLOCK: 21}
_NUMBERS_AT, _TEXTS_AT, _GRAMS_AT = 5, 8, 17
_GROUP_AT = {_NUMBERS_AT: 19, _TEXTS_AT: 20}  # of intervals
_FLAGS = {
    PREFIX: layout.HAS_PREFIXES,
    SUFFIX: layout.HAS_SUFFIXES,
    FOLDED: layout.HAS_FOLDED,
    FOLDED_PREFIX: layout.HAS_FOLDED_PREFIXES,
    FOLDED_SUFFIX: layout.HAS_FOLDED_SUFFIXES,
    BLOCK: layout.HAS_BLOCKS,
}
_BITS_OF_GRAM = 16  # of the filter: one in sixteen other grams passes it


class PathRecords(NamedTuple):
    """The names of the paths, and the sections of their records."""

    names: list[bytes]
    sections: dict[str, Array]


def path_records(numbering: Numbering, number_of: dict[Key, int]) -> PathRecords:
    """Build a record for each path of a key, and for the objects that contain it."""
    keys = numbering.keys()
    asked = paths_of(keys)
    opened = {prefix for path in asked for prefix in prefixes_of(path)}
    paths = sorted(opened.union(asked))
    at = {path: position for position, path in enumerate(paths)}
    records = np.zeros((len(paths), layout.PATH_WORDS), "<u4")
    for path in opened:
        records[at[path], 0] |= layout.IS_OPENED
    for key in keys:
        if isinstance(key, Value | OneOf):
            records[at[key.path], 0] |= layout.HAS_VALUES
        elif isinstance(key, PathExists):
            records[at[key.path], 2 if key.member else 1] = number_of[key]
        elif isinstance(key, TextKey):
            records[at[key.path], 0] |= _FLAGS[key.kind]
    group = numbering.end
    for column, flag, spanned in (
        (_NUMBERS_AT, layout.HAS_NUMBERS, spans(numbering.numbers, numbering.numbers_first)),
        (_TEXTS_AT, layout.HAS_TEXTS, spans(numbering.texts, numbering.texts_first)),
    ):
        for path, span in spanned.items():
            records[at[path], 0] |= flag
            records[at[path], column : column + 3] = span
            records[at[path], _GROUP_AT[column]] = group
            group += 1
    return PathRecords(
        [path_name(path) for path in paths],
        {
            "lengths": _add_lengths(records, at, keys),
            "gram_bits": _add_filters(records, at, numbering),
            "paths": records.ravel(),
        },
    )


def _add_lengths(records: Array, at: dict[str, int], keys: Iterable[Key]) -> Array:
    """Enter the lengths of beginnings and ends into the records; return the section."""
    lengths: list[int] = []
    for (path, kind), found in sorted(_lengths(keys).items()):
        column = _LENGTHS_AT[kind]
        records[at[path], column : column + 2] = len(lengths), len(lengths) + len(found)
        lengths += sorted(found)
    return np.array(lengths, "<u2")


def _add_filters(records: Array, at: dict[str, int], numbering: Numbering) -> Array:
    """Enter the filters of grams into the records; return the section."""
    filters: list[Array] = [np.zeros(0, "<u8")]
    end = 0
    for path, grams in sorted(_grams(numbering).items()):
        filters.append(_filter(grams))
        begin, end = end, end + len(filters[-1])
        records[at[path], _GRAMS_AT : _GRAMS_AT + 2] = begin, end
        for size in {len(gram) for gram in grams}:
            records[at[path], 0] |= layout.HAS_GRAMS[size]
    return np.concatenate(filters)


def _lengths(keys: Iterable[Key]) -> dict[tuple[str, bytes], set[int]]:
    """Return the lengths of beginnings and ends, by path and kind."""
    found: dict[tuple[str, bytes], set[int]] = {}
    for key in keys:
        if isinstance(key, TextKey) and key.kind in _LENGTHS_AT:
            found.setdefault((key.path, key.kind), set()).add(len(key.text))
    return found


def _grams(numbering: Numbering) -> dict[str, set[bytes]]:
    found: dict[str, set[bytes]] = {}
    for wildcard, name in numbering.wildcards.items():
        gram = name[len(gram_head(wildcard.path)) :]
        found.setdefault(wildcard.path, set()).add(gram)
    return found


def _filter(grams: set[bytes]) -> Array:
    """Return the filter of a path's grams."""
    words = 1 << (_BITS_OF_GRAM * len(grams) // BITS_OF_WORD).bit_length()
    made = np.zeros(words, "<u8")
    bits = np.fromiter(gram_bits(sorted(grams), words * BITS_OF_WORD), np.uint64, len(grams))
    np.bitwise_or.at(made, (bits >> np.uint64(6)).astype(np.int64), _one_bit(bits))
    return made


def _one_bit(bits: Array) -> Array:
    found: Array = np.uint64(1) << (bits & np.uint64(BITS_OF_WORD - 1))
    return found
