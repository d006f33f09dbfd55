"""Deduplicated conjunctions, each indexed by its rarest key or an interval. Plain module.

An entry has a gate and words; a conjunction is a gate and words that entries share.
"""

from collections.abc import Iterator
from typing import NamedTuple

from registrations.match_index.format.columns import NOT, NUMBER, TEST
from registrations.match_index.format.intervals import NONE, Thresholds, depths_of
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
_LOW, _HIGH = -2.0, -1.0  # weights below them: the bounds of the chosen interval


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
    """Conjunctions in their final order: by access key, gate and the words left to verify. The
    access "key" of an interval is the number of keys plus that of its group.
    """

    access: Array  # [c]
    gates: Array  # [c]
    rest_at: Array  # [c + 1]
    rest: Array
    of_entry: Array  # [n] the conjunction of each entry
    lows: Array  # [c] the keys of an interval, from `access` on that is no key; 0 of others
    highs: Array


class Weights(NamedTuple):
    """The number of conjunctions that an event with a key would have to verify."""

    keys: Array
    tests: Array  # of the attribute that a test requires, or _ABSENT
    anchors: Array  # the key of that attribute; EVERY if there is none
    thresholds: Thresholds
    depths: Array  # of each group of thresholds: the intervals that a value is in


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
    groups: list[ConjunctionGroup], thresholds: Thresholds, keys: int, anchors: Array
) -> Weights:
    """Estimate weights; an event passes half of the thresholds of one side of a path."""
    found = np.zeros(keys, np.float64)
    for group in groups:
        words = group.words.ravel()
        found += np.bincount(words[words < NOT], minlength=keys)
        tests = words[words >= TEST] & NUMBER
        found += np.bincount(anchors[tests], minlength=keys)
    for low, middle, high in thresholds.spans:
        for first, end in ((low, middle), (middle, high)):
            found[first:end] = found[first:end].sum() / 2
    tests = np.where(anchors == EVERY, _ABSENT, found[anchors])
    return Weights(found, tests, anchors, thresholds, _depths(groups, thresholds))


def _depths(groups: list[ConjunctionGroup], thresholds: Thresholds) -> Array:
    lows, highs = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for group in groups:
        for column in range(group.words.shape[1] - 1):
            chosen = thresholds.pair(group.words, column) != NONE
            lows.append(group.words[chosen, column].astype(np.int64))
            highs.append(group.words[chosen, column + 1].astype(np.int64))
    return depths_of(thresholds, np.concatenate(lows), np.concatenate(highs))


def indexed(groups: list[ConjunctionGroup], weights: Weights, entries: int) -> IndexedConjunctions:
    """Return all conjunctions in their final order."""
    parts = [part for group in groups for part in _parts(group, weights)]
    parts.sort(key=lambda part: part.rest.shape[1])
    access = np.concatenate([part.access for part in parts])
    gates = np.concatenate([part.gates for part in parts])
    lengths = np.concatenate([np.full(len(part.gates), part.rest.shape[1]) for part in parts])
    rest = np.concatenate([part.rest.ravel() for part in parts])
    lows, highs = (np.concatenate([getattr(part, name) for part in parts]) for name in _BOUNDS)
    order = np.lexsort((lows, (access.astype(np.uint64) << np.uint64(32)) | gates))
    final = np.empty(len(order), np.int64)
    final[order] = np.arange(len(order))
    of_entry = np.empty(entries, np.int64)
    begin = 0
    for part in parts:
        of_entry[part.entries] = final[begin + part.position]
        begin += len(part.gates)
    taken = spread(starts_of(lengths)[:-1][order], lengths[order])
    return IndexedConjunctions(
        access[order],
        gates[order],
        starts_of(lengths[order]),
        rest[taken],
        of_entry,
        lows[order],
        highs[order],
    )


class _Part(NamedTuple):
    """Conjunctions whose remaining words have one length, sorted by these."""

    access: Array
    gates: Array
    rest: Array
    entries: Array
    position: Array
    lows: Array
    highs: Array


_BOUNDS = ("lows", "highs")


class _Choice(NamedTuple):
    """The words of conjunctions in the order of verification, and what finds each."""

    words: Array
    access: Array
    taken: Array  # the number of first words that it has: an access key 1, an interval 2


def _parts(group: ConjunctionGroup, weights: Weights) -> Iterator[_Part]:
    """Yield the conjunctions that are found by all their words but some."""
    choice = _chosen(group.words, weights)
    for taken in range(3):
        chosen = choice.taken == taken
        if chosen.any():
            yield _part(group, chosen, choice)


def _chosen(words: Array, weights: Weights) -> _Choice:
    """Choose the access of conjunctions."""
    number = (words & NUMBER).astype(np.int64)
    is_test, is_not = words >= TEST, (words >= NOT) & (words < TEST)
    heavy = np.where(is_test | is_not, 0, number)
    weight = np.where(is_test, _TEST, np.where(is_not, _EXCLUDED, weights.keys[heavy]))
    height = len(words)
    if not words.shape[1]:
        return _Choice(words, np.zeros(height, np.int64), np.zeros(height, np.int64))
    least = weight.min(axis=1)
    group, column, depth = _intervals(words, weights)
    is_interval = depth < least
    rows = np.flatnonzero(is_interval)
    weight[rows, column[rows]], weight[rows, column[rows] + 1] = _LOW, _HIGH
    order = np.argsort(weight, axis=1, kind="stable")
    first = np.take_along_axis(words, order[:, :1], axis=1)[:, 0]
    least = np.where(is_interval, depth, least)
    tests = np.where(is_test, number, 0)
    by_test = np.where(is_test, weights.tests[tests] if len(weights.tests) else _ABSENT, _ABSENT)
    best = by_test.argmin(axis=1)
    each = np.arange(height)
    anchored = by_test[each, best] < np.minimum(least, _EXCLUDED)
    own = ~anchored & (least < _EXCLUDED)
    anchor = weights.anchors[tests[each, best]] if len(weights.anchors) else first
    access = np.where(own, first, np.where(anchored, anchor, EVERY)).astype(np.int64)
    is_interval &= ~anchored
    access[is_interval] = len(weights.keys) + group[is_interval]
    return _Choice(
        np.take_along_axis(words, order, axis=1), access, own.astype(np.int64) + is_interval
    )


def _intervals(words: Array, weights: Weights) -> tuple[Array, Array, Array]:
    """Return the best interval of each row: its group, the column of its lower bound and its depth,
    or _ABSENT.
    """
    group, column = np.full(len(words), NONE), np.zeros(len(words), np.int64)
    depth = np.full(len(words), _ABSENT)
    for at in range(words.shape[1] - 1):
        found = weights.thresholds.pair(words, at)
        better = found != NONE
        better[better] = weights.depths[found[better]] < depth[better]
        group[better], column[better] = found[better], at
        depth[better] = weights.depths[found[better]]
    return group, column, depth


def _part(group: ConjunctionGroup, chosen: Array, choice: _Choice) -> _Part:
    words, access, taken = choice.words[chosen], choice.access[chosen], choice.taken[chosen][0]
    gates, bounds = group.gates[chosen], np.zeros((len(words), 2), np.int64)
    if taken == len(_BOUNDS):
        bounds = words[:, :2].astype(np.int64)
    keys = np.hstack((access[:, None], gates[:, None], bounds, words[:, taken:]))
    order = order_of_rows(keys)
    position = np.full(len(chosen), -1, np.int64)
    position[np.flatnonzero(chosen)[order]] = np.arange(len(order))
    there = position[group.position] >= 0
    return _Part(
        access[order],
        gates[order],
        words[order, taken:],
        group.entries[there],
        position[group.position[there]],
        bounds[order, 0],
        bounds[order, 1],
    )
