"""The decoding of a shard into columns, so that its live entries can be rebuilt. Plain module."""

from collections.abc import Iterable

from registrations.match_index.format.columns import TEST, EntryColumns
from registrations.match_index.format.conjunctions import EVERY
from registrations.match_index.format.layout import EXTRA, PATH_WORDS, POSITION
from registrations.match_index.format.lazy_numpy import np
from registrations.match_index.format.names import GRAM, text_of
from registrations.match_index.format.ragged import Array, spread, starts_of
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.terms import (
    Above,
    AboveText,
    Below,
    BelowText,
    Key,
    OneOf,
    PathExists,
    Test,
    TypeKey,
    Value,
)
from registrations.match_index.format.text_keys import TextKey, WildcardKey


def columns_of(shard: Shard, removed: Iterable[int] = ()) -> EntryColumns:
    """Return all entries except those at removed dense positions. Keys have the numbers of the
    shard.
    """
    keys = keys_of(shard)
    lengths, words = _words(shard)
    dense_at = _numbers(shard, "dense_at") & POSITION
    of = np.repeat(np.arange(len(lengths)), np.diff(dense_at))
    alive = np.ones(len(of), bool)
    alive[np.fromiter(removed, np.int64)] = False
    of = of[alive]
    ids, gates = np.asarray(shard.views["ids"])[alive], _gates(shard)[of]
    starts = starts_of(lengths)
    return EntryColumns(
        ids,
        gates - 2,
        starts_of(lengths[of]),
        words[spread(starts[of], lengths[of])],
        [_name(shard, number) for number in range(2, shard.head.gates_end)],
        keys,
        [_test(shard, number, keys) for number in range(shard.head.tests)],
        {
            name.removeprefix(EXTRA): np.asarray(shard.views[name])[alive]
            for name in shard.views
            if name.startswith(EXTRA)
        },
    )


def keys_of(shard: Shard) -> list[Key | None]:
    """Return the keys by number; None for gates, grams and the first two numbers."""
    head = shard.head
    found: list[Key | None] = [None] * head.keys
    for number in range(head.gates_end, head.named_end):
        found[number] = _named(_name(shard, number))
    for position in range(head.paths):
        path = text_of(_name(shard, head.named_end + position)[1:])
        record = shard.views["paths"][position * PATH_WORDS : (position + 1) * PATH_WORDS].tolist()
        for member in (False, True):
            if record[1 + member]:
                found[record[1 + member]] = PathExists(path, member)
        for number in range(record[5], record[7]):
            found[number] = _number(shard, path, number, above=number < record[6])
        for number in range(record[8], record[10]):
            found[number] = _text(shard, path, number, above=number < record[9])
    for number, names in _sets(shard).items():
        if names[0].startswith(GRAM):
            found[number] = WildcardKey(_path_of(names[0]), parts_of(shard, number))
        else:
            found[number] = OneOf(_path_of(names[0]), tuple(sorted(names)))
    return found


def parts_of(shard: Shard, number: int) -> tuple[bytes, ...]:
    """Return the parts of a wildcard. Raises IndexError for another number, IndexDamaged."""
    at = number - shard.head.wildcards_first
    if at < 0:
        raise IndexError(number)
    begin, end = shard.views["wildcard_at"][at], shard.views["wildcard_at"][at + 1]
    if not begin < end < len(shard.views["part_at"]):
        raise IndexError(number)
    return tuple(shard.text("part_at", "parts", part) for part in range(begin, end))


def _words(shard: Shard) -> tuple[Array, Array]:
    """Return the words of each conjunction: its access key or interval and the rest, without the
    anchor that its test implies.
    """
    rest_at, rest = _numbers(shard, "rest_at"), _numbers(shard, "rest")
    access, lengths = _access(shard), np.diff(rest_at)
    anchors = np.append(_numbers(shard, "anchors"), 0)
    is_test = rest >= TEST
    of_word = np.repeat(np.arange(len(lengths)), lengths)
    anchored = is_test & (
        anchors[np.where(is_test, rest - TEST, len(anchors) - 1)] == access[of_word]
    )
    own = (access != EVERY).astype(np.int64)
    own[of_word[anchored]] = 0
    is_interval = access >= shard.head.keys
    own[is_interval] = 2
    whole = lengths + own
    words = np.empty(int(whole.sum()), np.uint32)
    starts = starts_of(whole)[:-1]
    words[starts[own == 1]] = access[own == 1]
    words[starts[is_interval]] = _numbers(shard, "lows")
    words[starts[is_interval] + 1] = _numbers(shard, "highs")
    words[spread(starts + own, lengths)] = rest
    return whole, words


def _access(shard: Shard) -> Array:
    """Return the access key of each conjunction; of an interval, the number of its group."""
    runs = np.diff(_numbers(shard, "key_runs"))
    of_run = np.repeat(np.arange(len(runs)), runs)
    return np.repeat(of_run, np.diff(_numbers(shard, "run_conjunctions")))


def _gates(shard: Shard) -> Array:
    of_run = _numbers(shard, "run_gates")
    return np.repeat(of_run, np.diff(_numbers(shard, "run_conjunctions"))).astype(np.uint32)


def _numbers(shard: Shard, name: str) -> Array:
    return np.asarray(shard.views[name]).astype(np.int64)


def _name(shard: Shard, number: int) -> bytes:
    return shard.text("name_at", "names", number)


def _named(name: bytes) -> Key | None:
    kind = name[:1]
    if kind == GRAM:
        return None
    if kind in (b"T", b"B"):
        return TypeKey(name)
    if kind == b"=":
        return Value(name, _path_of(name))
    head, _, rest = name[1:].partition(b":")
    return TextKey(kind, text_of(rest[: int(head)]), rest[int(head) :])


def _path_of(name: bytes) -> str:
    length, _, rest = name[1:].partition(b":")
    return text_of(rest[: int(length)])


def _number(shard: Shard, path: str, number: int, *, above: bool) -> Key:
    at = number - shard.head.numbers_first
    rest, rank = divmod(shard.views["number_ranks"][at], 2)
    than = shard.views["numbers"][at], rest
    return Above(path, than, rank == 1) if above else Below(path, than, rank == 0)


def _text(shard: Shard, path: str, number: int, *, above: bool) -> Key:
    at = number - shard.head.texts_first
    than, rank = shard.text("text_at", "texts", at), shard.views["text_ranks"][at]
    return AboveText(path, than, rank == 1) if above else BelowText(path, than, rank == 0)


def _sets(shard: Shard) -> dict[int, list[bytes]]:
    """Return the names of the values in each set of alternatives; of a wildcard, of its gram."""
    found: dict[int, list[bytes]] = {}
    at, implied = shard.views["implied_at"], shard.views["implied"]
    for position in range(len(at) - 1):
        for number in implied[at[position] : at[position + 1]]:
            found.setdefault(number, []).append(_name(shard, shard.head.gates_end + position))
    return found


def _test(shard: Shard, number: int, keys: list[Key | None]) -> Test:
    anchor = keys[shard.views["anchors"][number]]
    text = text_of(shard.text("test_at", "tests", number))
    return Test(text, anchor.path if isinstance(anchor, PathExists) else None)
