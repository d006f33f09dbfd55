"""Lists, short, long and as long as an event may have them, lists as tuples and texts as
applications: the same under every strategy and every engine, at a cost that many tests share.
"""

from collections.abc import Callable
from time import process_time
from typing import Any

import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.evaluate import holds
from registrations.filters.predicate import parse_predicate
from registrations.match_index.engines import lookup
from registrations.match_index.engines.available import ENGINES
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.dicts import event_from_dict
from registrations.matching.index import IndexMatcher, IndexOptions
from registrations.matching.matcher import Matcher
from registrations.matching.spec import specs_of
from registrations.matching.strategies import STRATEGIES, new_matcher

MOST = limits.ARITHMETIC_RESULTS_MAX
LAST = limits.ATTRIBUTES_VALUES_MAX
TEXTS = (
    *("(= tags 'a)", "(= tags 1)", "(!= tags 'a)", f"(= tags {LAST})", "(in tags 'b 'a)"),
    *(f"(> tags {LAST - 1})", f"(>= tags {LAST + 1})", "(< tags 1)", "(> tags 'z)", '(<= tags "")'),
    *("(prefix tags 'a)", "(suffix tags 'z)", "(substring tags 'az)", '(wildcard tags "a*z")'),
    *('(wildcard tags "*9*8*")', f"(> (+ tags 1) {MOST})", "(= (* tags 1) 1)", "(= tags more)"),
    *("(< tags more)", "(exists tags)", "(= in.tags 'a)", "(> in.tags 500)", "(not (= tags 'a))"),
    *("(and (= tags 'a) (= tags 1))", "(and (= tags 'a) (> tags 5) (not (= more 3)))"),
)
FILTERS = {number: parse_predicate(text) for number, text in enumerate(TEXTS)}
NUMBERS = [*range(1, LAST + 1)]
LISTS: tuple[list[Any], ...] = (
    *([], ["a"], ["a", 1, True], [["a"], {"a": "a"}], [None, [1]], [1.0, "1", "az"], [""]),
    *(NUMBERS, NUMBERS[:MOST], NUMBERS[: MOST + 1], [*map(str, NUMBERS)], [*NUMBERS[:-1], "az"]),
    [True] * (LAST - 1) + ["a"],
)
EVENTS = [
    Event("d", "t", attributes)
    for tags in LISTS
    for made in (tags, tuple(tags))
    for attributes in ({"tags": made}, {"tags": made, "more": [3, "a"]}, {"in": {"tags": made}})
]


def by_engine(engine: str) -> Callable[[], Matcher]:
    return lambda: IndexMatcher(options=IndexOptions(engine))


MAKES: dict[str, Callable[[], Matcher]] = {**STRATEGIES, **{n: by_engine(n) for n in ENGINES}}
makes = pytest.mark.parametrize("make", [*MAKES.values()], ids=[*MAKES])


def filled(make: Callable[[], Matcher], texts: dict[int, Any]) -> FilterMatcher:
    matcher = make()
    found = FilterMatcher(matcher)
    for number, node in texts.items():
        found.add(number, specs_of(node))
    if isinstance(matcher, IndexMatcher):
        matcher.compact()
    return found


@makes
def test_each_member_of_a_list_counts_at_any_length(make: Callable[[], Matcher]) -> None:
    matcher = filled(make, FILTERS)
    for event in EVENTS:
        expected = [number for number, node in FILTERS.items() if holds(node, event)]
        assert sorted(matcher.match(event)) == expected, event.attributes
    EVENTS[0].attributes["tags"].append("a")  # the same object, changed between two events
    try:
        assert 0 in matcher.match(EVENTS[0])
    finally:
        EVENTS[0].attributes["tags"].pop()


@makes
def test_one_text_is_one_application(make: Callable[[], Matcher]) -> None:
    matcher = filled(make, {1: parse_predicate("(= @application 'web)")})
    assert matcher.match(event_from_dict({"application": "web"})) == [1]
    assert matcher.match(event_from_dict({"application": ["api", "web"]})) == [1]
    assert matcher.match(event_from_dict({"application": ("w", "e", "b")})) == []


@makes
@pytest.mark.parametrize(
    "test",
    [
        "(> (+ tags 0) {})",
        '(suffix tags "x{}")',
        "(> tags {})",
        "(> of.tag {})",
        "(> (+ of.tag 0) {})",
        '(within of (or (in tag 2 {0}) (> tag {0}) (suffix text "x{0}") (substring text "x{0}")))',
        "(within of (within in (= tag {})))",
    ],
)
def test_tests_share_the_cost_of_an_event(make: Callable[[], Matcher], test: str) -> None:
    """Each test, of one filter or of several, costs about the same as in a small event."""
    nodes = {n: parse_predicate(f"(not {test.format(n + 10_000)})") for n in range(200)}
    matcher = filled(make, nodes)
    small, large = (
        {"tags": [1] * count, "of": [{"tag": 1, "text": "xy", "in": {"tag": 1}}] * count}
        for count in (1, (LAST - 1) // 5)
    )
    cost = [min(seconds(matcher, one) for _ in range(3)) for one in (small, large)]
    assert cost[1] < 5 * cost[0] + 0.02


def seconds(matcher: FilterMatcher, attributes: dict[str, Any]) -> float:
    event = Event("d", "t", attributes)
    before = process_time()
    assert len(matcher.match(event)) == 200
    return process_time() - before


def test_long_names_that_no_filter_has_are_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event had a name of 60 KB, and each engine cached 10,000 of them."""
    long = "n" * limits.PATH_CHARS_MAX
    kept: list[lookup.Lookup] = []
    true_init = lookup.Lookup.__init__

    def noted(look: lookup.Lookup, *args: Any) -> None:
        kept.append(look)
        true_init(look, *args)

    monkeypatch.setattr(lookup.Lookup, "__init__", noted)
    matchers = [filled(by_engine(name), {1: parse_predicate(f"(= {long} 1)")}) for name in ENGINES]
    for matcher in matchers:
        for number in range(20):
            attributes = {f"{number}{'x' * 60_000}": 1, long: 1, f"short{number}": 1}
            assert matcher.match(Event("d", "t", attributes)) == [1]
    assert len(kept) == len(ENGINES.keys() - {"compiled"})
    for look in kept:
        assert len(look.path_records) == 20
        assert max(map(len, look.path_records)) <= limits.INDEX_PATH_CACHED_CHARS_MAX
    assert new_matcher().match(Event("d", "t", {})) == []
