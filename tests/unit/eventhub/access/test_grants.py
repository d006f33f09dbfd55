"""Patterns and grants: what they allow, cover and refuse."""

import itertools
import re
import time

import pytest

from eventhub.access.grants import Grant, allows, covers, matches, parse_grants
from eventhub.base import errors


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("*", "", True),
        ("*", "orders", True),
        ("orders", "orders", True),
        ("orders", "Orders", False),
        ("orders", "orders2", False),
        ("orders.*", "orders.", True),
        ("orders.*", "orders", False),
        ("*.eu", "orders.eu", True),
        ("*.eu", "orders.eu.de", False),
        ("a*b*c", "abc", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "acb", False),
        ("ab*ba", "aba", False),
        ("a*a", "a", False),
        ("a*", "a*", True),
        ("orders.", "ordersx", False),
        ("[ab]", "a", False),
        ("**", "x", True),
    ],
)
def test_a_star_is_anything_and_the_rest_is_literal(
    pattern: str, name: str, expected: bool
) -> None:
    assert matches(pattern, name) is expected


def test_matching_agrees_with_regular_expressions_on_every_short_text() -> None:
    patterns = ["".join(p) for n in range(5) for p in itertools.product("ab*", repeat=n)]
    names = ["".join(p) for n in range(5) for p in itertools.product("ab", repeat=n)]
    for pattern in patterns:
        oracle = re.compile(".*".join(re.escape(part) for part in pattern.split("*")))
        for name in names:
            assert matches(pattern, name) is bool(oracle.fullmatch(name)), (pattern, name)


def test_covering_is_exactly_inclusion() -> None:
    """Short names with one letter that no pattern uses decide inclusion."""
    patterns = ["".join(p) for n in range(1, 4) for p in itertools.product("ab*", repeat=n)]
    names = ["".join(p) for n in range(5) for p in itertools.product("abc", repeat=n)]
    for own, requested in itertools.product(patterns, repeat=2):
        included = all(matches(own, name) for name in names if matches(requested, name))
        assert covers([Grant("emit", own)], Grant("emit", requested)) is included, (own, requested)


def test_nothing_is_allowed_by_default_and_actions_do_not_imply_each_other() -> None:
    assert not allows((), "emit", "orders")
    for action in ("emit", "listen", "manage"):
        grants = (Grant(action, "*"),)
        allowed = [other for other in ("emit", "listen", "manage") if allows(grants, other, "x")]
        assert allowed == [action]


def test_no_pattern_is_slow() -> None:
    started = time.perf_counter()
    assert not matches("*a" * 100, "a" * 199 + "b")
    assert time.perf_counter() - started < 5.0


@pytest.mark.parametrize(
    ("items", "error", "field"),
    [
        (None, errors.InvalidField, "grants"),
        ({}, errors.InvalidField, "grants"),
        (["emit:*"], errors.InvalidField, "grants.0"),
        ([{"action": "emit", "streams": "*"}, 1], errors.InvalidField, "grants.1"),
        ([{"streams": "*"}], errors.MissingField, "grants.0.action"),
        ([{"action": "emit"}], errors.MissingField, "grants.0.streams"),
        ([{"action": "all", "streams": "*"}], errors.InvalidField, "grants.0.action"),
        ([{"action": ["emit"], "streams": "*"}], errors.InvalidField, "grants.0.action"),
        ([{"action": "emit", "streams": ""}], errors.InvalidField, "grants.0.streams"),
        ([{"action": "emit", "streams": "a\0"}], errors.InvalidField, "grants.0.streams"),
        ([{"action": "emit", "streams": "a\n"}], errors.InvalidField, "grants.0.streams"),
        ([{"action": "emit", "streams": "a" * 201}], errors.FieldTooLong, "grants.0.streams"),
        ([{"action": "emit", "streams": "*", "x": 1}], errors.UnknownField, "grants.0.x"),
        ([{"action": "emit", "streams": "*"}] * 101, errors.FieldTooLong, "grants"),
    ],
)
def test_an_invalid_grant_is_refused_with_its_position(
    items: object, error: type[errors.EventHubError], field: str
) -> None:
    with pytest.raises(error) as caught:
        parse_grants(items)
    assert caught.value.field == field


def test_grants_keep_their_order_and_lose_repeats() -> None:
    items = [{"action": "listen", "streams": "b"}, {"action": "emit", "streams": "a"}]
    assert parse_grants(items + items) == (Grant("listen", "b"), Grant("emit", "a"))
