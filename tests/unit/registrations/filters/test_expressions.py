"""Expressions in a tree: bounded for a filter, and no error of one stops the matching of others."""

import logging
from itertools import count

import pytest

from eventhub.base import limits
from registrations.filters import expressions
from registrations.filters.ast import Expression
from registrations.filters.errors import FilterTooLarge
from registrations.filters.evaluate import holds
from registrations.filters.explain import explain
from registrations.filters.languages import parse
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.spec import specs_of
from registrations.matching.strategies import STRATEGIES
from tests.unit.registrations.filters.trees import event

HUGE = 10**5_000  # no event has it: Python refuses to write it as a text


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_unexpected_error_is_logged_and_stops_no_other_filter(
    strategy: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(expressions, "_failures", expressions.ExpressionFailures())
    matcher = FilterMatcher(STRATEGIES[strategy]())
    texts = ("string(n) != 'x'", "!(string(n) == 'x')", "size(tags) == 1", "n > 5")
    for number, text in enumerate(texts):
        matcher.add(number, specs_of(parse("cel", text).node))
    assert sorted(matcher.match(event({"n": HUGE, "tags": ["a"]}))) == [2, 3]
    (record,) = caplog.records
    assert "error=ValueError suppressed=0" in record.message
    assert record.levelno == logging.ERROR


def test_repeated_errors_are_logged_at_intervals(caplog: pytest.LogCaptureFixture) -> None:
    now_s = count(0.0, limits.LOG_REPEAT_S / 2)
    failures = expressions.ExpressionFailures(lambda: next(now_s))
    expression = Expression("cel", f"a == '{'x' * 1_000}'")
    for _ in range(3):
        failures.report(expression, ValueError())
    first, second = (record.message for record in caplog.records)
    assert "suppressed=0" in first and "suppressed=1" in second
    assert len(second) < 2 * limits.EXPLAIN_CHARS_MAX


@pytest.mark.parametrize(
    ("filter_", "one"),
    [
        ('(within l (cel "[1, 2, 3].all(x, [1, 2, 3].all(y, x + y > n))"))', {"n": 9}),
        ('(within l (cesql "LENGTH(LOWER(LOWER(LOWER(LOWER(n))))) > 1"))', {"n": "x"}),
    ],
)
def test_all_objects_of_a_list_share_the_work(filter_: str, one: dict[str, object]) -> None:
    node = parse("predicate", filter_).node
    objects = limits.EXPRESSION_STEPS_MAX // 7
    passing = {"n": "xx" if one["n"] == "x" else -1}
    assert holds(node, event({"l": [one] * 9 + [passing]}))
    assert holds(node, event({"l": [passing] + [one] * objects}))
    large = event({"l": [one] * objects + [passing]})
    assert not holds(node, large)
    assert "in none of" in explain(node, large).why


def test_a_filter_has_few_different_expressions() -> None:
    def joined(number: int) -> str:
        return " ".join(f'(cel "a + {n % number} > b")' for n in range(40))

    assert parse("predicate", f"(or {joined(limits.FILTER_EXPRESSIONS_MAX)})")
    with pytest.raises(FilterTooLarge) as caught:
        parse("predicate", f"(or {joined(limits.FILTER_EXPRESSIONS_MAX + 1)})")
    assert "expressions_max" in caught.value.details
