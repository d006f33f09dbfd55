"""Specs as columns of numbers, the input of the builder. Plain module.

A job may also produce these columns itself, from a table.
"""

from array import array
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from registrations.match_index.format.lazy_numpy import np
from registrations.match_index.format.names import gate_name
from registrations.match_index.format.terms import Key, Test, pair_key, test_terms
from registrations.matching.gates import GateKey, gate_of
from registrations.matching.spec import Spec, Specs

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEST = 1 << 31  # the word is a test ...
NOT = 1 << 30  # ... or a key that the event must not have
NUMBER = NOT - 1  # the mask of a key's or test's number in a word
NEVER = 1  # a key that no event has
FIRST_KEY = 2  # 0 is the key that every event has
_TEXTS_CACHED = 100_000
Integers: TypeAlias = "NDArray[np.int64]"
Words: TypeAlias = "NDArray[np.uint32]"
T = TypeVar("T", bound=Hashable)


class EntryColumns(NamedTuple):
    """The columns of `n` entries. A filter of several specs has an entry for each, under one id.

    The words of entry `i` are `words[offsets[i]:offsets[i + 1]]`, in any order.
    """

    ids: Integers  # [n] the caller's
    gates: Words  # [n] indexes into `gate_names`
    offsets: Integers  # [n + 1]
    words: Words  # an index into `keys`, or an index into `tests` with TEST
    gate_names: list[bytes]
    keys: list[Key | None]  # each once; None: a key that no event has
    tests: list[Test]
    extra: Mapping[str, Integers]  # [n] each


class EntryCollector:
    """A collector of entries; some 40 bytes each, and distinct keys and tests once."""

    def __init__(self, extra: Iterable[str] = ()) -> None:
        self._begin(extra)

    def _begin(self, extra: Iterable[str]) -> None:
        self._ids = array("q")
        self._gates = array("I")
        self._offsets = array("q", [0])
        self._words = array("I")
        self._gate_names: dict[bytes, int] = {}
        self._gate_keys: dict[GateKey, int] = {}
        self._keys: dict[Key | None, int] = {}
        self._tests: dict[Test, int] = {}
        self._texts: dict[tuple[str, str], int] = {}  # a cache of pairs with texts, the most usual
        self._extra = {name: array("q") for name in extra}

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, id: int, specs: Specs, extra: Mapping[str, int]) -> None:
        """Add a filter. Raises NotIndexable, and then adds nothing."""
        found = [(gate_of(spec), self._words_of(spec)) for spec in specs]
        for gate, words in found or [((None, None, None), [self._key(None)])]:
            self._add(id, gate, words, extra)

    def take(self, columns: EntryColumns) -> None:
        """Add all entries of columns."""
        of_key = np.array([_number_of(self._keys, key) for key in columns.keys], np.uint32)
        of_test = np.array([_number_of(self._tests, test) for test in columns.tests], np.uint32)
        of_gate = np.array([_number_of(self._gate_names, name) for name in columns.gate_names])
        is_test = columns.words >= TEST
        words, number = columns.words.copy(), columns.words & np.uint32(NUMBER)
        words[is_test] = of_test[number[is_test]] | np.uint32(TEST)
        words[~is_test] = of_key[number[~is_test]] | (words[~is_test] & np.uint32(NOT))
        self._ids.frombytes(columns.ids.astype(np.int64).tobytes())
        self._gates.frombytes(of_gate[columns.gates].astype(np.uint32).tobytes())
        begin = len(self._words)
        self._offsets.frombytes((columns.offsets[1:] + begin).astype(np.int64).tobytes())
        self._words.frombytes(words.tobytes())
        for name, values in self._extra.items():
            values.frombytes(columns.extra[name].astype(np.int64).tobytes())

    def drain(self) -> EntryColumns:
        """Return the collected columns, and become empty."""
        drained = EntryColumns(
            np.frombuffer(self._ids, np.int64),
            np.frombuffer(self._gates, np.uint32),
            np.frombuffer(self._offsets, np.int64),
            np.frombuffer(self._words, np.uint32),
            [*self._gate_names],
            [*self._keys],
            [*self._tests],
            {name: np.frombuffer(values, np.int64) for name, values in self._extra.items()},
        )
        self._begin(drained.extra)
        return drained

    def _add(self, id: int, gate: GateKey, words: list[int], extra: Mapping[str, int]) -> None:
        self._ids.append(id)
        number = self._gate_keys.get(gate)
        if number is None:
            number = self._gate_keys[gate] = _number_of(self._gate_names, gate_name(*gate))
        self._gates.append(number)
        self._words.extend(words)
        self._offsets.append(len(self._words))
        for name, values in self._extra.items():
            values.append(extra[name])

    def _words_of(self, spec: Spec) -> list[int]:
        known, words = self._texts, []
        for pair in spec.pairs:
            if pair[1].__class__ is not str:
                words.append(self._key(pair_key(*pair)))
                continue
            word = known.get(pair)  # type: ignore[arg-type]
            if word is None:
                if len(known) >= _TEXTS_CACHED:
                    known.clear()
                word = known[pair] = self._key(pair_key(*pair))  # type: ignore[index]
            words.append(word)
        for test in spec.tests:
            required, excluded, tests = test_terms(test, spec.domain)
            words += [self._key(key) for key in required]
            words += [self._key(key) | NOT for key in excluded]
            words += [_number_of(self._tests, each) | TEST for each in tests]
        return words

    def _key(self, key: Key | None) -> int:
        return _number_of(self._keys, key)


def _number_of(positions: dict[T, int], item: T) -> int:
    return positions.setdefault(item, len(positions))
