"""Versions as a stream's registrations have them, epochs built from their present state, and two
interests that must agree: one with the epochs, one with everything in memory.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from delivery.forward.indexed import IndexedVersions
from delivery.forward.stream_matcher import CallbackMatcher
from eventhub.event.envelope import Event
from registrations.filters.predicate import parse_predicate
from registrations.match_index.epochs.epoch import Epoch, open_epoch
from registrations.match_index.epochs.facts import EpochFacts
from registrations.match_index.format.builder import EpochPlan, IndexEntry, build
from registrations.match_index.format.versions import COLUMNS, NEVER_ENDS, report_bits
from registrations.matching.spec import Spec, specs_of
from registrations.matching.strategies import StreamStrategy
from registrations.matching.versions import StreamVersion, SuspensionSpan

CLIENTS = {1: "one", 2: "two", 3: "three"}
NUMBER_OF = {name: number for number, name in CLIENTS.items()}
GROUPS_OF = {"one": frozenset({"ops"}), "two": frozenset[str](), "three": frozenset({"ops"})}
FILTERS = (
    (Spec(),),
    (Spec(pairs=(("x", 1),)),),
    (Spec(pairs=(("x", 2),)),),
    specs_of(parse_predicate("(or (= x 1) (= x 2) (> y 3))")),
    (),
)
EVENTS = (
    Event("d", "t", {"x": 1}),
    Event("d", "t", {"x": 2, "y": 5}),
    Event("d", "t", {"x": 1}, audience=("ops",)),
    Event("d", "t", {"x": [1, 2]}, destinations=("two", "three")),
)
FACTS = EpochFacts(7, "history", after=0, xmin=10)


def version(id: int, **fields: Any) -> StreamVersion:
    made = StreamVersion(id, id * 10, "one", 1, FILTERS[0], 0, None)
    return made._replace(**fields)


def epoch_of(
    root: Path, versions: Iterable[StreamVersion], after: int = 0, through: int = 1
) -> Epoch:
    """Build the next epoch in a folder."""
    facts = FACTS._replace(after=after).stored()
    plan = EpochPlan(through, facts, COLUMNS, durable=False)
    build(root, (_entry(each) for each in versions if not is_over(each, after)), plan)
    return open_epoch(root)


def is_over(version: StreamVersion, after: int) -> bool:
    return version.until is not None and version.until <= max(after, version.since)


def _entry(version: StreamVersion) -> IndexEntry:
    columns = {
        "client": NUMBER_OF[version.client],
        "endpoint": version.endpoint_id or 0,
        "group": version.group or 0,
        "registration": version.registration,
        "report": report_bits(version.report, version.variable),
        "since": version.since,
        "until": NEVER_ENDS if version.until is None else version.until,
    }
    return IndexEntry(version.id, version.specs, columns)


class Twins:
    """Two interests: `plain` has everything in memory, `indexed` uses epochs. Both are notified of
    changes later, in order; an epoch may include them before.
    """

    def __init__(self, random: Random, root: Path) -> None:
        self.plain, self.indexed = (
            CallbackMatcher(0, StreamStrategy("auto"), groups_of=GROUPS_OF.__getitem__)
            for _ in range(2)
        )
        self.swaps = 0
        self._random = random
        self._root = root
        self._head = self._through = 0
        self._versions: dict[int, StreamVersion] = {}
        self._suspensions: dict[int, list[SuspensionSpan]] = {5: [], 6: []}
        self._untold: list[tuple[int, int, int]] = []  # (head, version, group)
        self._built: list[Epoch] = []
        self._had_ended = set[int]()  # when the last was built
        self._swapping: Iterator[None] | None = None

    # --- what happens ---

    def emit(self) -> None:
        self._head += 1

    def register(self) -> None:
        id, chance = len(self._versions) + 1, self._random
        made = version(
            id,
            client=chance.choice([*NUMBER_OF]),
            endpoint_id=chance.randint(1, 3),
            specs=chance.choice(FILTERS),
            since=self._head,
            group=chance.choice((None, None, 5, 6)),
            report=chance.choice((None, '["x"]')),
            variable=chance.choice((None, None, "Ev1")),
        )
        self._change(made)

    def change(self) -> None:
        """End a version and create another one of the same registration."""
        live = [each for each in self._versions.values() if each.until is None]
        if not live:
            return
        before = self._random.choice(live)
        self._change(before._replace(until=self._head))
        if self._random.random() < 0.5:
            id = len(self._versions) + 1
            specs = self._random.choice(FILTERS)
            self._change(before._replace(id=id, since=self._head, specs=specs))

    def suspend(self) -> None:
        group = self._random.choice((5, 6))
        spans = self._suspensions[group]
        if spans and spans[-1].until is None:
            spans[-1] = spans[-1]._replace(until=self._head)
        else:
            spans.append(SuspensionSpan(self._head, None))
        self._untold.append((self._head, 0, group))

    def tell(self) -> None:
        """Apply some changes, with the present form of what changed."""
        for _ in range(self._random.randint(1, len(self._untold) or 1)):
            if self._untold:
                _, id, group = self._untold.pop(0)
                for one in (self.plain, self.indexed):
                    one.take([self._versions[id]] if id else [])
                    one.suspend({group: tuple(self._suspensions[group])} if group else {})

    def match(self) -> None:
        """Match events, each after all changes before it were applied."""
        seen = min((head for head, _, _ in self._untold), default=self._head)
        for sequence in range(self.plain.passed + 1, seen + 1):
            for event in EVENTS:
                expected = self.plain.match(event, sequence)
                found = self.indexed.match(event, sequence)
                assert found.endpoints == expected.endpoints, (
                    sequence,
                    found.endpoints,
                    expected.endpoints,
                )
                assert found.shapes == expected.shapes, (
                    sequence,
                    found.endpoints,
                    expected.endpoints,
                )
        if self._random.random() < 0.5 and seen > self.plain.passed:
            passed = self._random.randint(self.plain.passed, seen)
            self.plain.advance(passed)
            self.indexed.advance(passed)

    def build(self) -> None:
        """Build an epoch; the position that the builder reads may lag."""
        self._through += 1
        after = self._random.randint(self._last_after(), self.indexed.passed)
        versions = self._versions.values()
        self._built.append(epoch_of(self._root, versions, after, self._through))
        self._had_ended = {each.id for each in versions if each.until is not None}

    def swap(self) -> None:
        """Start to swap to the last epoch built."""
        if self._built and self._swapping is None:
            epoch = self._built[-1]
            self._built.clear()
            self.indexed.record_changes()
            ended = {
                each.id: each.until
                for each in self._versions.values()
                if each.until is not None and each.id not in self._had_ended
            }
            self._swapping = self.indexed.swap(IndexedVersions(epoch, CLIENTS), ended)
            self.swaps += 1

    def step(self) -> None:
        """Make one step of the swap."""
        if self._swapping is not None and next(self._swapping, True):
            self._swapping = None

    def _change(self, made: StreamVersion) -> None:
        self._versions[made.id] = made
        self._untold.append((self._head, made.id, 0))

    def _last_after(self) -> int:
        indexed = self.indexed.indexed
        return 0 if indexed is None else indexed.epoch.facts.after
