"""The keys of tests of a text: its beginning, its end, its lower case, the parts of a wildcard, the
block of an address. Plain module.

An address is a text of its version and its bits, so a CIDR block is a beginning of that text.

A wildcard is found by one *gram*, 1, 2, 4 or 8 adjacent bytes of one of its parts, and then
compared. Of its grams it has the one that the fewest other wildcards of the path have; short ones
are in many texts, so they count more.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from registrations.filters.ast import Text
from registrations.filters.letter_case import SIGMA
from registrations.filters.text_tests import bits_of_block
from registrations.match_index.format.names import GRAM, prefixed, raw

LENGTH_BYTES_MAX = 64  # of a beginning or an end: an event's text is looked up for each length
PREFIX, SUFFIX, FOLDED, FOLDED_PREFIX, FOLDED_SUFFIX = b"^", b"$", b"~", b"[", b"]"
BLOCK = b"%"
GRAM_COSTS = {1: 64, 2: 8, 4: 1, 8: 1}  # by size: the relative number of texts that have one
MIX = 0x9E3779B97F4A7C15  # a multiplier that spreads the bits of a gram
BITS_OF_WORD = 64
_GRAMS_OF_PART_MAX = 256  # of a longer part, the first grams are enough


@dataclass(frozen=True, slots=True, order=True)
class TextKey:
    """A text at a path begins with, ends with, or is a text; `kind`: which, and whether this is
    said of its lower-case form, or of the bits of the address that it is.
    """

    kind: bytes
    path: str
    text: bytes


@dataclass(frozen=True, slots=True, order=True)
class WildcardKey:
    """A text at a path has these parts in order, the first at its beginning and the last at its
    end. One of them is not empty.
    """

    path: str
    parts: tuple[bytes, ...]


def text_key(test: Text) -> TextKey | WildcardKey | None:
    """Return the key that is equivalent to a test of an attribute; None if there is none. A
    wildcard has a star: without one it is an equality.
    """
    path, text = test.path.name, raw(test.text)
    match test.op:
        case "prefix":
            return _of_parts(path, (text, b""))
        case "suffix":
            return _of_parts(path, (b"", text))
        case "substring":
            return _of_parts(path, (b"", text, b"") if text else (b"", b""))
        case "wildcard":
            return _of_parts(path, tuple(map(raw, test.parts)))
        case "equals-ignore-case" | "prefix-ignore-case" | "suffix-ignore-case":
            return _in_one_case(test)
        case "cidr":
            return TextKey(BLOCK, path, bits_of_block(test.text))


def _in_one_case(test: Text) -> TextKey | None:
    """Return the key of a test that ignores case; None with a sigma, because the engines look
    up the lower-case form of a text (`str.lower`), which has two forms of it.
    """
    (folded,) = test.parts
    text = raw(folded)
    if SIGMA in folded:
        return None
    if test.op == "equals-ignore-case":
        return TextKey(FOLDED, test.path.name, text)
    kind = FOLDED_PREFIX if test.op == "prefix-ignore-case" else FOLDED_SUFFIX
    return TextKey(kind, test.path.name, text) if len(text) <= LENGTH_BYTES_MAX else None


def _of_parts(path: str, parts: tuple[bytes, ...]) -> TextKey | WildcardKey:
    if len(parts) == 2 and not all(parts) and max(map(len, parts)) <= LENGTH_BYTES_MAX:
        return TextKey(SUFFIX, path, parts[1]) if parts[1] else TextKey(PREFIX, path, parts[0])
    return WildcardKey(path, parts)


def grams_of(wildcards: Iterable[WildcardKey]) -> dict[WildcardKey, bytes]:
    """Choose the gram by which each wildcard is found; return their names."""
    each = {wildcard: _grams(wildcard) for wildcard in wildcards}
    counts = Counter((one.path, gram) for one, grams in each.items() for gram in grams)
    return {
        one: gram_head(one.path)
        + min(grams, key=lambda gram: (_cost(counts[one.path, gram], gram), -len(gram), gram))
        for one, grams in each.items()
    }


def gram_head(path: str) -> bytes:
    """Return the beginning of the names of the grams of a path."""
    return prefixed(GRAM, path)


def gram_bits(grams: Iterable[bytes], count: int) -> Iterator[int]:
    """Yield the bit of each gram, in a filter of `count` bits, a power of two: a text without the
    bit of its gram needs no look-up.
    """
    shift = BITS_OF_WORD + 1 - count.bit_length()
    whole = (1 << BITS_OF_WORD) - 1
    for gram in grams:
        yield (int.from_bytes(gram, "little") * MIX & whole) >> shift


def _cost(count: int, gram: bytes) -> int:
    return count * GRAM_COSTS[len(gram)]


def _grams(wildcard: WildcardKey) -> set[bytes]:
    found = set()
    for part in wildcard.parts:
        size = max((size for size in GRAM_COSTS if size <= len(part)), default=0)
        end = min(len(part) - size + 1, _GRAMS_OF_PART_MAX) if size else 0
        found |= {part[at : at + size] for at in range(end)}
    return found
