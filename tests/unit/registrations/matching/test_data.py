"""Filters over the body of an event: every strategy returns what the scan does (G5), and parses the
body only for filters that read it.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eventhub.event import filterable
from eventhub.event.envelope import Event
from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Exists,
    In,
    Not,
    Or,
    Path,
    Text,
    Within,
)
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.languages import parse
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.matcher import Matcher
from registrations.matching.postings import Postings, keys_of_specs
from registrations.matching.scan import ScanMatcher
from registrations.matching.spec import Spec, specs_of
from registrations.matching.strategies import STRATEGIES, MatcherFactory
from tests.unit.registrations.matching.programs import FEW, IDS, Add, Step, differs, seeded, share
from tests.unit.registrations.matching.vocabulary import FEW_PATHS

ORDER = {"total": 60, "country": "NO", "items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]}


def with_body(body: Any, **fields: Any) -> Event:
    fields = {"attributes": {}, "filterable_data": True, **fields}
    encoded = json.dumps(body).encode()
    return Event("shop", "order", body=encoded, content_type="application/json", **fields)


def in_data(part: Any) -> Any:
    """Return a test, or an operand of one, with its attributes in `data`."""
    match part:
        case Path(name, "attributes"):
            return Path(f"data.{name}")
        case Compare(left=left, right=right) | Arithmetic(left=left, right=right):
            return replace(part, left=in_data(left), right=in_data(right))
        case In(path) | Text(_, path) | Exists(path) | Within(path):
            return replace(part, path=in_data(path))
        case And(items) | Or(items):
            return replace(part, items=tuple(map(in_data, items)))
        case Not(item):
            return Not(in_data(item))
    return part


def moved(steps: Iterator[Step]) -> Iterator[Step]:
    """Yield a program whose events have their attributes in the body."""
    for step in steps:
        if isinstance(step, Event):
            yield step._replace(
                attributes={}, body=json.dumps(step.attributes).encode(), filterable_data=True
            )
        elif isinstance(step, Add):
            spec = step.spec
            pairs = tuple((f"data.{name}", value) for name, value in spec.pairs)
            tests = tuple(map(in_data, spec.tests))
            yield Add(step.id, spec._replace(pairs=pairs, tests=tests))
        else:
            yield step


class OneSpecEach:
    """A filter matcher as a matcher of single specs."""

    def __init__(self, matcher: Matcher) -> None:
        self.counters = matcher.counters
        self._filters = FilterMatcher(matcher)
        self.remove, self.match, self.size = (
            self._filters.remove,
            self._filters.match,
            self._filters.__len__,
        )

    def add(self, id: int, spec: Spec) -> None:
        self._filters.add(id, (spec,))

    def __len__(self) -> int:
        return self.size()


def of_filters(make: MatcherFactory) -> MatcherFactory:
    def new(hierarchy: TypeHierarchy = no_supertypes) -> Matcher:
        return OneSpecEach(make(hierarchy))

    return new


@pytest.mark.parametrize("ids", [IDS, FEW])
def test_strategies_agree_with_the_scan_on_bodies(ids: int) -> None:
    others = {name: of_filters(make) for name, make in STRATEGIES.items()}
    assert differs(moved(seeded(3, 1_000, FEW_PATHS, ids)), ScanMatcher, **others) is None
    found = share(moved(seeded(3, 1_000, FEW_PATHS, ids)), ScanMatcher)
    assert found.matched > found.events / 10


def matched_by(event: Event, *filters: str) -> list[str]:
    """Return the filters that an event matches; all strategies and the evaluation agree."""
    nodes = [parse("predicate", one).node for one in filters]
    held = [at for at, node in enumerate(nodes) if holds(node, event)]
    for name, make in STRATEGIES.items():
        matcher = FilterMatcher(make())
        for at, node in enumerate(nodes):
            matcher.add(at, specs_of(node))
        assert sorted(matcher.match(event)) == held, name
    return [filters[at] for at in held]


@pytest.mark.parametrize(
    ("body", "filter", "held"),
    [
        (ORDER, '(and (> data.total 50) (= data.country "NO"))', True),
        (ORDER, "(= data.total 61)", False),
        (ORDER, "(within data.items (and (= sku 'a) (= n 1)))", True),
        (ORDER, "(within data.items (and (= sku 'a) (= n 2)))", False),
        (ORDER, "(within data (and (= total 60) (exists items)))", True),
        (ORDER, "(not (exists data.refund))", True),
        (ORDER, "(exists data)", True),
        (ORDER, "(= total 60)", False),
        ([{"a": 1}, {"a": 2}], "(= data.a 2)", True),
        ([1, 2], "(= data 2)", True),
        ("text", '(prefix data "te")', True),
        (None, "(= data null)", True),
    ],
)
def test_the_body_is_the_attribute_data(body: Any, filter: str, held: bool) -> None:
    assert bool(matched_by(with_body(body), filter)) is held
    opaque = with_body(body, filterable_data=False)
    assert bool(matched_by(opaque, filter)) is filter.startswith("(not")


def test_an_attribute_of_that_name_goes_first() -> None:
    own = with_body({"a": 1}, attributes={"data": {"a": 2}})
    assert matched_by(own, "(= data.a 1)", "(= data.a 2)") == ["(= data.a 2)"]
    exact = with_body({"a": 1, "b": 1}, attributes={"data.a": 2})
    assert matched_by(exact, "(= data.a 1)", "(= data.a 2)", "(= data.b 1)") == [
        "(= data.a 2)",
        "(= data.b 1)",
    ]


def test_a_body_is_parsed_only_for_a_filter_that_reads_it() -> None:
    parsed = filterable._data
    matcher = FilterMatcher(STRATEGIES["auto"]())
    matcher.add(1, specs_of(parse("predicate", "(= a 1)").node))
    event = with_body({"only": "here"})
    before = parsed.cache_info()
    assert matcher.match(event) == [] and not holds(parse("predicate", "(= a 1)").node, event)
    assert parsed.cache_info() == before
    matcher.add(2, specs_of(parse("predicate", "(= data.only 'here)").node))
    assert matcher.match(event) == [2] and matcher.match(event) == [2]
    assert parsed.cache_info().misses == before.misses + 1
    matcher.remove(2)
    after = parsed.cache_info()
    assert matcher.match(event) == [] and parsed.cache_info() == after


def test_postings_do_not_rule_out_an_event_by_its_body() -> None:
    keys = keys_of_specs(specs_of(parse("predicate", "(and (= data 7) (= a 1))").node))
    postings = Postings()
    postings.add(with_body(7, attributes={"a": 1}))
    assert keys is not None and postings.candidates(keys) == [0]
    assert keys_of_specs(specs_of(parse("predicate", "(= data 7)").node)) is None
