"""The binary layout of a shard of the match index: header, table of sections, sections, which
docs/match-index.md describes. Plain module.
"""

import sys
from struct import Struct, error, pack_into
from typing import NamedTuple

from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.names import hash_of

MAGIC = b"EVHMATCH"
VERSION = 5
BYTE_ORDER = 0x01020304  # reads as 0x04030201 in the other byte order
ALIGNMENT = 64  # of sections: a cache line
_HEADER = Struct("<8sIIQI4x3Q17I4xQ")  # the form, then the fields of ShardHeader, then the checksum
_SECTION = Struct("<24sQQQ")
_CHECKSUM_AT = _HEADER.size - 8
HEADER_BYTES = _HEADER.size
SECTIONS_MAX = 64
EXTRA = "extra:"  # the prefix of the names of the caller's columns

# name and item size in bytes, in the order of the file
SECTIONS = {
    "table": 8,
    "name_at": 4,
    "names": 1,
    "paths": 4,
    "lengths": 2,
    "implied_at": 4,
    "implied": 4,
    "numbers": 8,
    "number_ranks": 2,
    "wildcard_at": 4,
    "part_at": 4,
    "parts": 1,
    "gram_bits": 8,
    "text_at": 4,
    "texts": 1,
    "text_ranks": 1,
    "key_runs": 4,
    "run_gates": 4,
    "run_conjunctions": 4,
    "lows": 4,
    "highs": 4,
    "tops": 4,
    "rest_at": 4,
    "rest": 4,
    "dense_at": 4,
    "ids": 8,
    "by_id": 4,
    "test_at": 4,
    "tests": 1,
    "anchors": 4,
}
PATH_WORDS = 23  # of one record of `paths`
HAS_VALUES, IS_OPENED, HAS_PREFIXES, HAS_NUMBERS, HAS_TEXTS = 1, 2, 4, 8, 16  # flags of a path
HAS_SUFFIXES, HAS_FOLDED, HAS_FOLDED_PREFIXES, HAS_FOLDED_SUFFIXES = 32, 64, 128, 256
HAS_GRAMS = {1: 512, 2: 1024, 4: 2048, 8: 4096}  # by size in bytes
HAS_BLOCKS = 8192
SHARED = 1 << 31  # in `dense_at`: some ids of the conjunction are in other conjunctions too
POSITION = SHARED - 1


class ShardHeader(NamedTuple):
    """The fields of the header. Keys are numbered in classes, each up to an `end`."""

    hash_mask: int
    entries: int  # pairs of an id and a conjunction: the length of `ids`
    ids: int  # distinct ones
    gates_end: int
    implying_end: int  # grams of wildcards, values in a set of alternatives
    named_end: int  # keys that have a name: gates, values, texts, types
    wildcards_first: int
    numbers_first: int
    texts_first: int
    keys: int
    paths: int
    conjunctions: int
    intervals: int  # the last conjunctions
    interval_groups: int
    runs: int
    tests: int
    rest: int
    slots: int  # of the table, without those for overflow: a power of two
    gate_forms: int  # a bit for each: domain given + 2 * type given + 4 * application given
    flags: int  # 1: there are keys of types


class Section(NamedTuple):
    """The position of a section in the file, and the XXH64 of its bytes."""

    offset: int
    length: int
    checksum: int


def head_bytes(head: ShardHeader, file_bytes: int, sections: dict[str, Section]) -> bytes:
    """Return the header and the table of sections, with the checksum."""
    made = bytearray(_HEADER.size + _SECTION.size * len(sections))
    _HEADER.pack_into(made, 0, MAGIC, BYTE_ORDER, VERSION, file_bytes, len(sections), *head, 0)
    for at, (name, section) in enumerate(sections.items()):
        _SECTION.pack_into(made, _HEADER.size + at * _SECTION.size, name.encode(), *section)
    pack_into("<Q", made, _CHECKSUM_AT, hash_of(bytes(made)))
    return bytes(made)


def read_head(data: memoryview) -> tuple[ShardHeader, dict[str, Section]]:
    """Read the header. Raises IndexDamaged if it is damaged, of another version, or does not fit
    the file.
    """
    try:
        magic, order, version, size, count, *values, checksum = _HEADER.unpack_from(data)
    except error as cut:
        raise IndexDamaged("The file is too short to be a match index.") from cut
    if magic != MAGIC:
        raise IndexDamaged("The file is not a match index.")
    if order != BYTE_ORDER or sys.byteorder != "little":
        raise IndexDamaged("The match index has another byte order.")
    if version != VERSION:
        raise IndexDamaged(f"The match index has version {version}; this hub reads {VERSION}.")
    end = _HEADER.size + count * _SECTION.size
    if count > SECTIONS_MAX or end > len(data) or size != len(data):
        raise IndexDamaged(f"The file has {len(data)} bytes; its header says {size}.")
    whole = bytearray(data[:end])
    pack_into("<Q", whole, _CHECKSUM_AT, 0)
    if hash_of(bytes(whole)) != checksum:
        raise IndexDamaged("The header is altered.")
    sections = dict(_section(data, at) for at in range(_HEADER.size, end, _SECTION.size))
    head = ShardHeader(*values)
    _check(head, sections, len(data))
    return head, sections


def _section(data: memoryview, at: int) -> tuple[str, Section]:
    name, *rest = _SECTION.unpack_from(data, at)
    return name.rstrip(b"\0").decode("ascii", "replace"), Section(*rest)


def _check(head: ShardHeader, sections: dict[str, Section], size: int) -> None:
    """Check that every section is inside the file and has the length that the header implies."""
    missing = SECTIONS.keys() - sections.keys()
    if missing:
        raise IndexDamaged(f"The match index has no {', '.join(sorted(missing))}.")
    for name, section in sections.items():
        item = SECTIONS.get(name, 8)
        if section.offset % ALIGNMENT or section.offset + section.length > size:
            raise IndexDamaged(f"The section {name} is not inside the file.")
        if section.length % item or not _fits(head, name, section.length // item):
            raise IndexDamaged(f"The section {name} has the wrong length.")


def _fits(head: ShardHeader, name: str, items: int) -> bool:
    if name.startswith(EXTRA):
        return items == head.entries
    expected = {
        "name_at": head.named_end + head.paths + 1,
        "paths": head.paths * PATH_WORDS,
        "implied_at": head.implying_end - head.gates_end + 1,
        "numbers": head.texts_first - head.numbers_first,
        "number_ranks": head.texts_first - head.numbers_first,
        "wildcard_at": head.numbers_first - head.wildcards_first + 1,
        "text_at": head.keys - head.texts_first + 1,
        "text_ranks": head.keys - head.texts_first,
        "key_runs": head.keys + head.interval_groups + 1,
        "lows": head.intervals,
        "highs": head.intervals,
        "run_gates": head.runs,
        "run_conjunctions": head.runs + 1,
        "rest_at": head.conjunctions + 1,
        "rest": head.rest,
        "dense_at": head.conjunctions + 1,
        "ids": head.entries,
        "by_id": head.entries,
        "test_at": head.tests + 1,
        "anchors": head.tests,
    }.get(name)
    return expected is None or items == expected
