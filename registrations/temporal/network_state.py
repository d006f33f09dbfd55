"""The state of a network as bytes: the remembered events with the values of their fields, and from
where on each registration remembers. Plain module.

Partial matches are not part of it: they follow from the remembered events, in the same order, so
they are joined again when the state is restored.
"""

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from registrations.filters.ast import Scalar
from registrations.filters.printed import printed, printed_operand
from registrations.patterns.pattern_engine import EventPosition
from registrations.temporal.entries import AlphaPattern, Entry
from registrations.temporal.expressions import printed_test
from registrations.temporal.network import TemporalNetwork, TemporalRegistration

VERSION = 1


class _StoredPosition(msgspec.Struct, array_like=True):
    """`segment`: its index in the list of segments."""

    index: int
    order: int
    stream: int
    segment: int
    sequence: int
    time_us: int


class _StoredMemory(msgspec.Struct, array_like=True):
    """The entries of an alpha memory: the index and the values of each."""

    pattern: str
    complete_from: int
    entries: list[tuple[int, list[Scalar]]]


class _StoredRegistration(msgspec.Struct, array_like=True):
    number: int
    digest: bytes
    start: int
    is_ended: bool


class NetworkState(msgspec.Struct, array_like=True):
    """The state of one network. `streams`: null; those of its group in older states."""

    streams: object
    index: int
    last: _StoredPosition | None
    segments: list[str]
    positions: list[_StoredPosition]
    memories: list[_StoredMemory]
    registrations: list[_StoredRegistration]


def network_state(network: TemporalNetwork) -> NetworkState:
    """Return the state of a network."""
    segments: dict[str, int] = {}
    positions: dict[int, _StoredPosition] = {}
    memories: list[_StoredMemory] = []
    for text, alpha in sorted((_text(one), alpha) for one, alpha in network.alphas.items()):
        entries: list[tuple[int, list[Scalar]]] = []
        for entry in alpha.memory.entries:
            positions.setdefault(entry.index, _stored(entry.index, entry.position, segments))
            entries.append((entry.index, list(entry.values)))
        memories.append(_StoredMemory(text, alpha.memory.complete_from, entries))
    last = network.position
    return NetworkState(
        None,
        network.index,
        None if last is None else _stored(network.index, last, segments),
        list(segments),
        list(positions.values()),
        memories,
        [
            _StoredRegistration(number, _digest(one), network.joins[number].start, is_ended)
            for number, one in sorted(network.registrations.items())
            for is_ended in (network.joins[number].is_ended,)
        ],
    )


def restore_network(
    network: TemporalNetwork,
    state: NetworkState,
    registrations: Mapping[int, TemporalRegistration],
) -> None:
    """Fill a new network with these registrations and a state. Those that the state lacks, or has
    with another text, remember later events only.
    """
    network.index = state.index
    segments = state.segments
    network.position = None if state.last is None else _position(state.last, segments)
    for number, registration in sorted(registrations.items()):
        network.add(number, registration, ())
    positions = {one.index: _position(one, segments) for one in state.positions}
    stored = {one.pattern: one for one in state.memories}
    for pattern in network.alphas:
        memory = stored.get(_text(pattern))
        if memory is not None:
            entries = [Entry(index, positions[index], tuple(v)) for index, v in memory.entries]
            network.restore_memory(pattern, entries, memory.complete_from)
    for one in state.registrations:
        if one.number in registrations and one.digest == _digest(registrations[one.number]):
            _restore(network, one)


def _restore(network: TemporalNetwork, stored: _StoredRegistration) -> None:
    joins = network.joins[stored.number]
    joins.start = stored.start
    if stored.is_ended:
        network.end(stored.number)
        return
    network.replay(joins)
    joins.take_found()  # they were reported
    joins.dropped.clear()


def _text(pattern: AlphaPattern) -> str:
    """Return a text that identifies an event pattern."""
    paths = " ".join(map(printed_operand, pattern.paths))
    tests = " ".join(map(printed_test, pattern.tests))
    return f"{printed(pattern.filter)} [{paths}] {tests}"


def _digest(registration: TemporalRegistration) -> bytes:
    pattern = registration.plan.pattern
    return sha256(f"{registration.once} {pattern.text}".encode()).digest()[:12]


def _stored(index: int, position: EventPosition, segments: dict[str, int]) -> _StoredPosition:
    segment = segments.setdefault(position.segment, len(segments))
    order, stream, _, sequence, time_us = position
    return _StoredPosition(index, order, stream, segment, sequence, time_us)


def _position(stored: _StoredPosition, segments: list[str]) -> EventPosition:
    segment = segments[stored.segment]
    return EventPosition(stored.order, stored.stream, segment, stored.sequence, stored.time_us)
