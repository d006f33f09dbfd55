"""Deduplicated conjunctions, each indexed by its rarest key. Plain module.

An entry has a gate and words; a conjunction is a gate and words that entries share.
"""

from collections.abc import Iterator
from typing import NamedTuple

from registrations.match_index.format.columns import NOT, NUMBER, TEST
from registrations.match_index.format.lazy_numpy import np
from registrations.match_index.format.ragged import (
    Array,
    first_of_equals,
    order_of_rows,
    spread,
    starts_of,
)

EVERY = 0  # the key that every event has
_EXCLUDED, _TEST, _ABSENT = 1e18, 2e18, 3e18  # weights above all real ones


class Entries(NamedTuple):
    """Entries with final numbers; the words of each are sorted and distinct."""

    ids: Array
    gates: Array
    lengths: Array
    words: Array


class ConjunctionGroup(NamedTuple):
    """The distinct conjunctions of one length, and the entries of each."""

    gates: Array  # [m]
    words: Array  # [m, length]
    entries: Array  # [k] indexes of entries
    position: Array  # [k] the conjunction of each


class IndexedConjunctions(NamedTuple):
    """Conjunctions in their final order: by access key, gate and the words left to verify."""

    access: Array  # [c]
    gates: Array  # [c]
    rest_at: Array  # [c + 1]
    rest: Array
    of_entry: Array  # [n] the conjunction of each entry


class Weights(NamedTuple):
    """The number of conjunctions that an event with a key would have to verify."""

    keys: Array
    tests: Array  # of the attribute that a test requires, or _ABSENT
    anchors: Array  # the key of that attribute; EVERY if there is none


def grouped(entries: Entries) -> Iterator[ConjunctionGroup]:
    """Group equal entries, for each length, ascending."""
    starts = starts_of(entries.lengths)
    for length in np.unique(entries.lengths):
        which = np.flatnonzero(entries.lengths == length)
        matrix = np.empty((len(which), 1 + length), np.uint32)
        matrix[:, 0] = entries.gates[which]
        matrix[:, 1:] = entries.words[starts[which, None] + np.arange(length)]
        order = order_of_rows(matrix)
        matrix = matrix[order]
        first = first_of_equals(matrix)
        yield ConjunctionGroup(
            matrix[first, 0], matrix[first, 1:], which[order], np.cumsum(first, dtype=np.int64) - 1
        )


def weights_of(
    groups: list[ConjunctionGroup], spans: list[tuple[int, int]], keys: int, anchors: Array
) -> Weights:
    """Estimate weights. `spans`: ranges of thresholds of one side; an event passes half of them."""
    found = np.zeros(keys, np.float64)
    for group in groups:
        words = group.words.ravel()
        found += np.bincount(words[words < NOT], minlength=keys)
        tests = words[words >= TEST] & NUMBER
        found += np.bincount(anchors[tests], minlength=keys)
    for first, end in spans:
        found[first:end] = found[first:end].sum() / 2
    tests = np.where(anchors == EVERY, _ABSENT, found[anchors])
    return Weights(found, tests, anchors)


def indexed(groups: list[ConjunctionGroup], weights: Weights, entries: int) -> IndexedConjunctions:
    """Return all conjunctions in their final order."""
    parts = [part for group in groups for part in _parts(group, weights)]
    parts.sort(key=lambda part: part.rest.shape[1])
    access = np.concatenate([part.access for part in parts])
    gates = np.concatenate([part.gates for part in parts])
    lengths = np.concatenate([np.full(len(part.gates), part.rest.shape[1]) for part in parts])
    rest = np.concatenate([part.rest.ravel() for part in parts])
    order = np.argsort((access.astype(np.uint64) << np.uint64(32)) | gates, kind="stable")
    final = np.empty(len(order), np.int64)
    final[order] = np.arange(len(order))
    of_entry = np.empty(entries, np.int64)
    begin = 0
    for part in parts:
        of_entry[part.entries] = final[begin + part.position]
        begin += len(part.gates)
    taken = spread(starts_of(lengths)[:-1][order], lengths[order])
    return IndexedConjunctions(
        access[order], gates[order], starts_of(lengths[order]), rest[taken], of_entry
    )


class _Part(NamedTuple):
    """Conjunctions whose remaining words have one length, sorted by these."""

    access: Array
    gates: Array
    rest: Array
    entries: Array
    position: Array


def _parts(group: ConjunctionGroup, weights: Weights) -> Iterator[_Part]:
    """Yield the conjunctions whose access key is one of their words, then the others, which keep
    all words.
    """
    order, own, access = _chosen(group.words, weights)
    words = np.take_along_axis(group.words, order, axis=1)
    for chosen, rest in ((own, words[:, 1:]), (~own, words)):
        if chosen.any():
            yield _part(group, chosen, access[chosen], rest[chosen])


def _chosen(words: Array, weights: Weights) -> tuple[Array, Array, Array]:
    """Return the order of verification of the words, whether the first is the access key, and the
    access key.
    """
    number = (words & NUMBER).astype(np.int64)
    is_test, is_not = words >= TEST, (words >= NOT) & (words < TEST)
    heavy = np.where(is_test | is_not, 0, number)
    weight = np.where(is_test, _TEST, np.where(is_not, _EXCLUDED, weights.keys[heavy]))
    order = np.argsort(weight, axis=1, kind="stable")
    if not words.shape[1]:
        return order, np.zeros(len(words), bool), np.zeros(len(words), np.uint32)
    first = np.take_along_axis(words, order[:, :1], axis=1)[:, 0]
    least = weight.min(axis=1)
    tests = np.where(is_test, number, 0)
    by_test = np.where(is_test, weights.tests[tests] if len(weights.tests) else _ABSENT, _ABSENT)
    best = by_test.argmin(axis=1)
    rows = np.arange(len(words))
    anchored = by_test[rows, best] < np.minimum(least, _EXCLUDED)
    own = ~anchored & (least < _EXCLUDED)
    anchor = weights.anchors[tests[rows, best]] if len(weights.anchors) else first
    access = np.where(own, first, np.where(anchored, anchor, EVERY)).astype(np.uint32)
    return order, own, access


def _part(group: ConjunctionGroup, chosen: Array, access: Array, rest: Array) -> _Part:
    order = order_of_rows(np.hstack((access[:, None], group.gates[chosen, None], rest)))
    position = np.full(len(chosen), -1, np.int64)
    position[np.flatnonzero(chosen)[order]] = np.arange(len(order))
    there = position[group.position] >= 0
    return _Part(
        access[order],
        group.gates[chosen][order],
        rest[order],
        group.entries[there],
        position[group.position[there]],
    )
