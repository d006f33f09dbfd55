"""Covering: sound for random filters, and found where the requirements demand it."""

import re
from itertools import product
from pathlib import Path as File
from random import Random

import pytest

from registrations.filters.ast import And, Compare, Const, Node, Path
from registrations.filters.closure import implied
from registrations.filters.closure.covers_by_value import covers
from registrations.filters.closure.fox_constraint import stronger
from registrations.filters.closure.implied import _values, follows
from registrations.filters.evaluate import holds
from registrations.filters.languages import parse
from tests.unit.registrations.filters.closure.vocabulary import alike, events, filter_of, hierarchy

EVENTS = list(events())


def tree(text: str) -> Node:
    return parse("predicate", text.replace("'", '"')).node


def unsound(seed: int, pairs: int) -> tuple[int, tuple[Node, Node] | None]:
    """Return how many pairs of random filters cover each other, and the first pair wrongly so."""
    random, found = Random(seed), 0
    for _ in range(pairs):
        depth = random.randrange(3)
        one, other = filter_of(random, depth), filter_of(random, depth)
        if random.random() < 0.4:
            one, other = alike(random)
        elif random.random() < 0.5:
            other = And((other, one)) if random.random() < 0.5 else And((one, filter_of(random)))
        if random.random() < 0.5:
            one, other = other, one
        if not covers(one, other):
            continue
        found += 1
        for event in random.sample(EVENTS, 150):
            if holds(other, event, hierarchy) and not holds(one, event, hierarchy):
                return found, (one, other)
    return found, None


def test_a_covering_filter_matches_all_that_the_covered_one_matches() -> None:
    found, wrong = unsound(seed=7, pairs=5_000)
    assert wrong is None
    assert found > 700, "covering is hardly ever found"


MISTAKES = {
    "a list taken for one value": (
        "_excludes",
        lambda fact, test: _values(fact) is not None and not follows(test, fact),
    ),
    "a bound taken for the same one without its end": (
        "_beyond",
        lambda known, asked, one, other: one == other or (one > other) == known.large,
    ),
    "texts of numbers taken for texts alone": ("number_of", lambda value: None),
    "what stands before taken for what stands behind": (
        "_text_follows",
        lambda test, fact: test.text in fact.text,
    ),
    "a type taken for those above it": (
        "_of_type",
        lambda test, fact: getattr(fact, "type", None) is not None,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    attribute, planted = MISTAKES[name]
    monkeypatch.setattr(implied, attribute, planted)
    assert unsound(seed=1, pairs=10_000)[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(> x 5)", "(> x 7)"),
        ("(> x 5)", "(< 7 x)"),
        ("(>= x 5)", "(> x 5)"),
        ("(> x 5)", "(= x 6)"),
        ("(> x 5)", "(in x 6 '7')"),
        ("(> x 'a')", "(>= x 'b')"),
        ("(exists x)", "(= x null)"),
        ("(exists x)", "(> (+ x y) 5)"),
        ("(= x 1)", "(and (= x 1.0) (= y 2))"),
        ("(in x 1 2 3)", "(in x 1 3)"),
        ("(prefix x 'a')", "(wildcard x 'ab*c')"),
        ("(wildcard x '*b*')", "(= x 'abc')"),
        ("(!= x 3)", "(and (!= x 3) (> y 1))"),
        ("(!= x 3)", "(and (exists x) (= x 4) (not (= x 3)))"),
        ("(not (> x 7))", "(not (> x 5))"),
        ("(not (= @type 'a'))", "(= @type 'b')"),
        ("(type 'a')", "(= @type 'a')"),
        ("(type '*::a')", "(type 'd::a')"),
        ("(type '*::a.*')", "(type 'd::a.b')"),
        ("(= @domain 'd')", "(type 'd::*')"),
        ("(or (= x 1) (> y 5))", "(or (> y 6) (and (= x 1) (= y 0)))"),
        ("true", "(= x 1)"),
        ("(= x 1)", "(and (= y 1) (not (= y 1)))"),
    ],
)
def test_a_filter_covers_stricter_ones(one: str, other: str) -> None:
    assert covers(tree(one), tree(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(> x 7)", "(> x 5)"),
        ("(> x 7)", "(>= x 7)"),
        ("(> x 5)", "(> y 7)"),
        ("(> x 5)", "(> x '7')"),  # of a text that is none of a number nothing is known
        ("(> x '10')", "(> x '9')"),  # as texts yes, as numbers no
        ("(not (= x 2))", "(= x 1)"),  # a list has both
        ("(!= x 2)", "(= x 1)"),
        ("(!= x 3)", "(and (exists x) (not (= x 3)))"),  # an empty list is there
        ("(exists x)", "(exists x.y)"),
        ("(= @type 'a')", "(type 'a')"),  # or a declared subtype
        ("(type 'd::a')", "(type '*::a')"),
        ("(type 'a')", "(type 'a.*')"),
        ("(= x 1)", "(or (= x 1) (= x 2))"),
        ("(= x 1)", "true"),
        ("(suffix x 'a')", "(prefix x 'a')"),
    ],
)
def test_a_filter_covers_nothing_else(one: str, other: str) -> None:
    assert not covers(tree(one), tree(other))


def test_the_example_of_the_page_runs() -> None:
    page = (File(__file__).parents[5] / "docs" / "interest.md").read_text()
    [example, *_] = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    exec(compile(example, "docs/interest.md", "exec"), {})


TYPED = {
    "pairs": {"type": "t", "attributes": {"a": 1, "b": 2}},
    "predicate": "(and (= @type 't) (> a 1) (!= b 'x))",
    "ready": "t | $a > 3 and not ($b < 5)",
}
MORE = {
    "pairs": {"type": "t", "attributes": {"a": 1, "b": 2, "c.d": 3}},
    "predicate": "(and (= @type 't) (or (> a 1) (= b 1)) (exists c.d))",
    "ready": "t | $a > $b and exist $c.d",
}


@pytest.mark.req("FOX-16")
def test_stronger_is_of_the_same_type_by_more_attributes_in_every_language() -> None:
    def read(filters: dict[str, object]) -> list[Node]:
        return [parse(language, filter).node for language, filter in filters.items()]

    less, more = read(TYPED), read(MORE)
    for f, g in product(more, less):
        assert stronger(f, g)
        assert not stronger(g, f)
    for one, other in (*product(less, less), *product(more, more)):
        assert not stronger(one, other), "identical sets have no relation"
    [most] = read({"predicate": "(and (= @type 't) (= a 1) (= b 1) (= c.d 1) (exists e))"})
    assert all(stronger(most, one) for one in (*more, *less)), "transitive"
    others = read(
        {
            "pairs": {"type": "t", "attributes": {"b": 1, "c": 1}},
            "predicate": "(and (= @type 'u) (= a 1) (= b 2) (= c 1) (= c.d 2))",
            "ready": "d::t | exist $a and exist $b and exist $c.d and exist $e",
        }
    )
    for f, g in product(others, (*less, *more)):
        assert not stronger(f, g), (f, g)
        assert not stronger(g, f), (f, g)
    never = And((Compare("=", Path("a"), Const(1)), Compare("=", Path("b"), Const(1))))
    assert not stronger(tree("(and (= a 1) (not (= a 1)))"), never)


@pytest.mark.req("FOX-16")
def test_covering_is_another_relation_than_stronger() -> None:
    wide, narrow = tree("(and (= @type 't') (> x 5))"), tree("(and (= @type 't') (> x 7))")
    assert covers(wide, narrow)
    assert not stronger(narrow, wide)
    far = tree("(and (= @type 't') (< x 5) (exists y))")
    assert stronger(far, wide)
    assert not covers(wide, far)
