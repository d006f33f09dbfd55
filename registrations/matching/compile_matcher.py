"""Strategy `compile`: the whole set of subscriptions is one program (OIF-28). Plain module.

A subscription is a row of steps, equalities and other tests, the oldest step first. Rows with a
common prefix share its blocks, so a subscription with more tests is nested in the then-part of the
other. All equalities of a path are one switch. A step in several blocks is evaluated once per
event, and a threshold may decide others (thresholds.py).
"""

from typing import NamedTuple

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const, Path
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.event_values import EventValues
from registrations.filters.values import MISSING, key_of, value_at
from registrations.matching.atoms import Key, Pair, keys_of
from registrations.matching.conditions import Condition, Conditions
from registrations.matching.gates import GateKey, gate_of, gates_of
from registrations.matching.matcher import Counters
from registrations.matching.spec import Spec
from registrations.matching.thresholds import Strength, Threshold, ThresholdOrder


class Block:
    """A block of the program, run where all steps that lead to it hold: numbers to return, and
    further steps.
    """

    __slots__ = ("cases", "ids", "tests")

    def __init__(self) -> None:
        self.ids: dict[int, None] = {}
        self.cases: dict[str, dict[Key, Block]] = {}  # by path and value
        self.tests: dict[Condition, Block] = {}

    def empty(self) -> bool:
        return not (self.ids or self.cases or self.tests)


class ProgramRow(NamedTuple):
    """A subscription in the program."""

    gate: GateKey
    steps: tuple[Condition, ...]  # ascending by number: the oldest first


class CompileMatcher:
    """A program for each gate. Subscriptions are added and removed in place.

    `counters.lookups` counts switches, `counters.touched` blocks, `counters.shadowed` tests that
    another test decided.
    """

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.counters = Counters()
        self._tests = Conditions(hierarchy)
        self._shadows = ThresholdOrder()
        self._programs: dict[GateKey, Block] = {}
        self._rows: dict[int, ProgramRow] = {}

    def add(self, id: int, spec: Spec) -> None:
        self.remove(id)
        pairs = [Compare("=", Path(path), Const(value)) for path, value in spec.pairs]
        row = ProgramRow(gate_of(spec), self._tests.of((*pairs, *spec.tests)))
        for step in row.steps:
            if not step.users:
                self._shadows.add(step)
        self._tests.use(row.steps)
        block = self._programs.setdefault(row.gate, Block())
        for step in row.steps:
            block = block_after(block, step)
        block.ids[id] = None
        self._rows[id] = row

    def remove(self, id: int) -> None:
        row = self._rows.pop(id, None)
        if row is None:
            return
        remove_row(self._programs[row.gate], row.steps, id)
        if self._programs[row.gate].empty():
            del self._programs[row.gate]
        self._tests.forget(row.steps)
        for step in row.steps:
            if not step.users:
                self._shadows.remove(step)

    def match(self, event: Event) -> list[int]:
        due: list[int] = []
        findings = Findings(event, self._tests.hierarchy, self._shadows, self.counters)
        for gate in gates_of(event):
            if (program := self._programs.get(gate)) is not None:
                self.counters.touched += run(program, findings, due)
        return due

    def __len__(self) -> int:
        return len(self._rows)

    def size(self) -> tuple[int, int, int, int]:
        """Return the number of programs, blocks, steps and sides of thresholds (SUN-09)."""
        blocks, waiting = 0, [*self._programs.values()]
        while waiting:
            block = waiting.pop()
            blocks += 1
            waiting += block.tests.values()
            waiting += (inner for cases in block.cases.values() for inner in cases.values())
        return len(self._programs), blocks, len(self._tests), len(self._shadows)


class Findings:
    """The results for one event, each computed once."""

    def __init__(
        self, event: Event, hierarchy: TypeHierarchy, shadows: ThresholdOrder, counters: Counters
    ) -> None:
        self._event = event
        self._values = EventValues(event)
        self._hierarchy = hierarchy
        self._shadows = shadows
        self._counters = counters
        self._keys: dict[str, dict[Key, None]] = {}
        self._verdicts: dict[Condition, bool] = {}
        self._passed: dict[object, Strength] = {}  # of a side, the strongest threshold passed ...
        self._failed: dict[object, Strength] = {}  # ... and the weakest that failed

    def keys_at(self, path: str) -> dict[Key, None]:
        keys = self._keys.get(path)
        if keys is None:
            value = value_at(self._event.attributes, path)
            found = () if value is MISSING else keys_of(value)
            keys = self._keys[path] = dict.fromkeys(found)
            self._counters.lookups += 1
        return keys

    def holds(self, test: Condition) -> bool:
        verdict = self._verdicts.get(test)
        if verdict is None:
            threshold = self._shadows.thresholds.get(test)
            verdict = self._tried(test) if threshold is None else self._compared(test, threshold)
            self._verdicts[test] = verdict
        return verdict

    def _compared(self, test: Condition, threshold: Threshold) -> bool:
        """Return the result of a threshold; evaluate it only if no other of its side decides."""
        side, strength = threshold
        if side not in self._passed and side not in self._failed:
            weakest = self._shadows.weakest(side)
            verdict = self._verdicts[weakest] = self._tried(weakest)
            bounds = self._passed if verdict else self._failed
            bounds[side] = self._shadows.thresholds[weakest].strength
            if weakest is test:
                return verdict
        if side in self._failed and strength >= self._failed[side]:
            self._counters.shadowed += 1
            return False
        if side in self._passed and strength <= self._passed[side]:
            self._counters.shadowed += 1
            return True
        verdict = self._tried(test)
        (self._passed if verdict else self._failed)[side] = strength
        return verdict

    def _tried(self, test: Condition) -> bool:
        self._counters.evaluated += 1
        return holds(test.node, self._values, self._hierarchy)


def run(program: Block, findings: Findings, due: list[int]) -> int:
    """Add the numbers of every reached block; return how many blocks were reached."""
    reached, waiting = 0, [program]
    while waiting:
        block = waiting.pop()
        reached += 1
        due += block.ids
        for path, cases in block.cases.items():
            keys = findings.keys_at(path)
            few, many = (cases, keys) if len(cases) < len(keys) else (keys, cases)
            waiting += [cases[key] for key in few if key in many]
        waiting += [inner for test, inner in block.tests.items() if findings.holds(test)]
    return reached


def block_after(block: Block, step: Condition) -> Block:
    """Return the then-part of a step; create it if there is none."""
    pair = pair_of(step)
    if pair is None:
        return block.tests.setdefault(step, Block())
    path, key = pair
    return block.cases.setdefault(path, {}).setdefault(key, Block())


def remove_row(program: Block, steps: tuple[Condition, ...], id: int) -> None:
    """Remove a number, and the blocks that led to it only."""
    trail = [program]
    for step in steps:
        trail.append(block_after(trail[-1], step))
    del trail[-1].ids[id]
    for block, inner, step in reversed([*zip(trail, trail[1:], steps, strict=False)]):
        if not inner.empty():
            return
        remove_step(block, step)


def remove_step(block: Block, step: Condition) -> None:
    pair = pair_of(step)
    if pair is None:
        del block.tests[step]
        return
    path, key = pair
    del block.cases[path][key]
    if not block.cases[path]:
        del block.cases[path]


def pair_of(step: Condition) -> Pair | None:
    """Return the path and value of an equality, which is a case of a switch."""
    match step.node:
        case Compare("=", Path(path, "attributes"), Const(value)) if value == value:  # no NaN  # noqa: PLR0124
            return path, key_of(value)
    return None
