"""The look-up of a text in the match index, in Python: its beginnings and ends, also in lower case,
the blocks of the address that it is, and the wildcards that it fits. Plain module.

The grams of all wildcards are read at the first look-up. A text's bytes are compared with them, or,
if the text is long and its path has few wildcards, it is compared with each.
"""

from collections.abc import Iterator
from typing import NamedTuple

from registrations.filters.text_tests import address_of, bits_of
from registrations.filters.wildcard import fits
from registrations.match_index.format import layout
from registrations.match_index.format.decode import parts_of
from registrations.match_index.format.names import GRAM, prefixed, raw
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.text_keys import (
    BLOCK,
    FOLDED,
    FOLDED_PREFIX,
    FOLDED_SUFFIX,
    PREFIX,
    SUFFIX,
)

_LENGTHS_AT = {PREFIX: 3, SUFFIX: 11, FOLDED_PREFIX: 13, FOLDED_SUFFIX: 15, BLOCK: 21}
_FOLDED_FLAGS = layout.HAS_FOLDED | layout.HAS_FOLDED_PREFIXES | layout.HAS_FOLDED_SUFFIXES
_GRAM_FLAGS = sum(layout.HAS_GRAMS.values())
TEXT_FLAGS = (
    layout.HAS_PREFIXES | layout.HAS_SUFFIXES | _FOLDED_FLAGS | _GRAM_FLAGS | layout.HAS_BLOCKS
)
_BYTES_OF_WILDCARD = 16  # of a text, compared with grams in the time of one wildcard
Lengths = tuple[bytes, tuple[int, ...]]  # the beginning of the names, and lengths in bytes
_NO_LENGTHS: Lengths = b"", ()
Fitting = dict[int, tuple[bytes, ...]]  # parts of wildcards, by number


class TextRecord(NamedTuple):
    """The keys of the texts at a path."""

    beginnings: Lengths
    ends: Lengths
    is_folded: bool
    whole: bytes | None  # the beginning of the names of texts in lower case
    folded_beginnings: Lengths
    folded_ends: Lengths
    grams: bytes | None  # the beginning of their names
    blocks: Lengths  # of addresses


def text_record(shard: Shard, path: str, record: list[int]) -> TextRecord | None:
    """Return the keys of the texts at a path, of its record in the file; None if it has none."""
    flags = record[0]
    if not flags & TEXT_FLAGS:
        return None

    def lengths(kind: bytes) -> Lengths:
        at = _LENGTHS_AT[kind]
        begin, end = record[at : at + 2]
        return prefixed(kind, path), tuple(shard.views["lengths"][begin:end].tolist())

    return TextRecord(
        lengths(PREFIX),
        lengths(SUFFIX),
        bool(flags & _FOLDED_FLAGS),
        prefixed(FOLDED, path) if flags & layout.HAS_FOLDED else None,
        lengths(FOLDED_PREFIX),
        lengths(FOLDED_SUFFIX),
        prefixed(GRAM, path) if flags & _GRAM_FLAGS else None,
        lengths(BLOCK),
    )


class Wildcards:
    """The wildcards of a shard: by path, by the size of their grams, by gram."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._by_path: dict[bytes, dict[int, dict[bytes, Fitting]]] | None = None
        self._of_path: dict[bytes, Fitting] = {}

    def fitting(self, head: bytes, text: bytes) -> Iterator[int]:
        """Yield the wildcards of a path that a text fits. `head`: of the names of its grams."""
        if self._by_path is None:
            self._by_path = self._read()
        whole = self._of_path.get(head, {})
        if len(whole) * _BYTES_OF_WILDCARD < len(text):
            yield from numbers_that_fit(whole, text)
            return
        for size, grams in self._by_path.get(head, {}).items():
            parts = {text[at : at + size] for at in range(len(text) - size + 1)}
            for gram in parts & grams.keys():
                yield from numbers_that_fit(grams[gram], text)

    def _read(self) -> dict[bytes, dict[int, dict[bytes, Fitting]]]:
        shard, found = self._shard, dict[bytes, dict[int, dict[bytes, Fitting]]]()
        at, implied = shard.views["implied_at"], shard.views["implied"]
        for position in range(len(at) - 1):
            name = shard.text("name_at", "names", shard.head.gates_end + position)
            if not name.startswith(GRAM):
                break  # grams come first
            length, _, rest = name[1:].partition(b":")
            end = len(name) - len(rest) + int(length)
            head, gram = name[:end], name[end:]
            several = implied[at[position] : at[position + 1]]
            fitting = {number: parts_of(shard, number) for number in several}
            found.setdefault(head, {}).setdefault(len(gram), {})[gram] = fitting
            self._of_path.setdefault(head, {}).update(fitting)
        return found


# --- the hot loops ---


def names_of(record: TextRecord, text: str, data: bytes) -> Iterator[bytes]:
    """Yield the names of the keys that a text may have, except wildcards. `data`: its bytes."""
    yield from names_of_ends(record.beginnings, record.ends, data)
    if record.blocks[1] and (address := address_of(text)):
        yield from names_of_ends(record.blocks, _NO_LENGTHS, bits_of(address))
    if not record.is_folded:
        return
    lower = raw(text.lower())
    if record.whole is not None:
        yield record.whole + lower
    yield from names_of_ends(record.folded_beginnings, record.folded_ends, lower)


def names_of_ends(beginnings: Lengths, ends: Lengths, data: bytes) -> Iterator[bytes]:
    """Yield the names of the beginnings and ends of a text."""
    size = len(data)
    head, lengths = beginnings
    for length in lengths:
        if length > size:
            break
        yield head + data[:length]
    head, lengths = ends
    for length in lengths:
        if length > size:
            break
        yield head + data[size - length :]


def numbers_that_fit(wildcards: Fitting, text: bytes) -> Iterator[int]:
    """Yield the wildcards that a text fits."""
    for number, parts in wildcards.items():
        if fits(parts, text):
            yield number
