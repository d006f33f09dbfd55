"""Patterns of event-ruler's own cases and of Amazon's documentation, with the result that Amazon
EventBridge has. `DIFFERENT` are those where the hub's result is another one, by its own rules for
values (docs/languages.md, "EventBridge").

Sources: github.com/aws/event-ruler at 337e8d9, README.md and correctness-cases.json of its tests;
Amazon EventBridge User Guide, "Comparison operators for use in event patterns".
"""

from typing import Any

import pytest

from registrations.filters.evaluate import holds
from registrations.filters.eventbridge import parse_eventbridge
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.spec import specs_of
from registrations.matching.strategies import STRATEGIES
from tests.unit.registrations.filters.trees import event

Case = tuple[str, dict[str, Any], dict[str, Any], bool]  # name, detail's pattern, detail, matches
THERE = [{"exists": True}]
BOTH = {"a": THERE, "b": THERE}
POINTS = {"vals": [{"numeric": [">", 0, "<", 10]}]}


def a(*allowed: Any) -> dict[str, Any]:
    return {"a": list(allowed)}


AGREEING: tuple[Case, ...] = (
    # --- correctness-cases.json ---
    ("flat: both", {"d": BOTH}, {"d": {"a": 1, "b": 2}}, True),
    ("flat: one missing", {"d": BOTH}, {"d": {"a": 1}}, False),
    ("flat: exact", {"d": {"a": ["x"], "b": ["y"]}}, {"d": {"a": "x", "b": "y"}}, True),
    ("flat: another", {"d": {"a": ["x"], "b": ["y"]}}, {"d": {"a": "x", "b": "z"}}, False),
    ("flat: range", {"d": {"x": [{"numeric": [">", 0, "<", 100]}]}}, {"d": {"x": 50}}, True),
    ("one object has both", {"d": BOTH}, {"d": [{"a": 1, "b": 2}]}, True),
    ("two objects have one each", {"d": BOTH}, {"d": [{"a": 1}, {"b": 2}]}, False),
    ("the last object", {"d": BOTH}, {"d": [{"a": 1}, {"b": 2}, {"a": 3, "b": 4}]}, True),
    ("three fields", {"d": {**BOTH, "c": THERE}}, {"d": [{"a": 1}, {"b": 2}, {"c": 3}]}, False),
    ("prefix in one object", {"d": {"n": [{"prefix": "al"}], "s": THERE}},
     {"d": [{"n": "alice", "s": "ok"}]}, True),
    ("prefix in another", {"d": {"n": [{"prefix": "al"}], "s": THERE}},
     {"d": [{"n": "alice"}, {"s": "ok"}]}, False),
    ("suffix in one object", {"d": {"n": [{"suffix": "ice"}], "t": THERE}},
     {"d": [{"n": "alice", "t": "user"}]}, True),
    ("suffix in another", {"d": {"n": [{"suffix": "ice"}], "t": THERE}},
     {"d": [{"n": "alice"}, {"t": "user"}]}, False),
    ("a list of texts", {"tags": ["admin"]}, {"tags": ["user", "admin"]}, True),
    ("not in the list", {"tags": ["root"]}, {"tags": ["user", "admin"]}, False),
    ("a list and a text", {"d": {"tags": [{"prefix": "ad"}], "t": THERE}},
     {"d": {"tags": ["admin", "user"], "t": "GROUP"}}, True),
    ("lists in lists' objects", {"u": {"t": {"k": ["c"], "v": ["b"]}}},
     {"u": [{"t": [{"k": "c", "v": "b"}]}]}, True),
    ("inner objects", {"u": {"t": {"k": ["c"], "v": ["b"]}}},
     {"u": [{"t": [{"k": "c"}, {"v": "b"}]}]}, False),
    ("outer objects", {"d": {"n": THERE, "i": {"x": ["1"]}}},
     {"d": [{"n": "alice"}, {"i": {"x": "1"}}]}, False),
    ("outer object", {"d": {"n": THERE, "i": {"x": ["1"]}}},
     {"d": [{"n": "alice", "i": {"x": "1"}}]}, True),
    ("nested leaves", {"a": {"b": {"x": THERE, "y": THERE}}}, {"a": [{"b": [{"x": 1}, {"y": 2}]}]},
     False),
    ("two lists", {"u": {"n": THERE}, "tags": ["admin"]},
     {"u": [{"n": "alice"}], "tags": ["admin", "user"]}, True),
    ("a list and its split sibling", {"u": {"n": THERE, "e": THERE}, "tags": ["admin"]},
     {"u": [{"n": "alice"}, {"e": "b@x"}], "tags": ["admin"]}, False),
    ("absent", {"d": {"a": THERE, "b": [{"exists": False}]}}, {"d": [{"a": 1}]}, True),
    ("present", {"d": {"a": THERE, "b": [{"exists": False}]}}, {"d": [{"a": 1, "b": 2}]}, False),
    ("no object", {"d": {"a": THERE}}, {}, False),
    ("an empty list of objects", {"d": {"a": THERE}}, {"d": []}, False),
    ("one object of many", {"d": {"a": ["x"], "b": ["y"]}},
     {"d": [{"a": "x"}, {"a": "z"}, {"a": "x", "b": "y"}, {"a": "z"}]}, True),
    ("a range in one object", {"i": {"p": [{"numeric": [">", 0, "<", 100]}], "n": THERE}},
     {"i": [{"n": "w", "p": 50}, {"n": "g", "p": 200}]}, True),
    ("anything-but of one object", {"u": {"s": [{"anything-but": "no"}], "n": THERE}},
     {"u": [{"n": "alice", "s": "no"}, {"n": "bob", "s": "yes"}]}, True),
    ("a range in a list", POINTS, {"vals": [100, 5, 200]}, True),
    ("deep lists", {"a": {"b": {"c": {"v": THERE, "t": THERE}}}},
     {"a": {"b": {"c": {"v": ["x", "y"], "t": "ok"}}}}, True),
    # --- README.md, and the User Guide ---
    ("equals-ignore-case", a({"equals-ignore-case": "aLiCe"}), {"a": "ALICE"}, True),
    ("equals-ignore-case of another", a({"equals-ignore-case": "alice"}), {"a": "alic"}, False),
    ("prefix", a({"prefix": "us-"}), {"a": "us-east-1"}, True),
    ("prefix in any case", a({"prefix": {"equals-ignore-case": "EC2"}}), {"a": "ec2-x"}, True),
    ("suffix", a({"suffix": ".png"}), {"a": "cat.png"}, True),
    ("suffix in any case", a({"suffix": {"equals-ignore-case": ".png"}}), {"a": "C.PNG"}, True),
    ("wildcard", a({"wildcard": "dir/*.png"}), {"a": "dir/a/b.png"}, True),
    ("wildcard of a star", a({"wildcard": "a\\*b"}), {"a": "a*b"}, True),
    ("wildcards", a({"wildcard": "*/lib/*"}), {"a": "/usr/lib/x"}, True),
    ("anything-but of a text", a({"anything-but": "starting"}), {"a": "running"}, True),
    ("anything-but of that text", a({"anything-but": "starting"}), {"a": "starting"}, False),
    ("anything-but of texts", a({"anything-but": ["stopped", "busy"]}), {"a": "busy"}, False),
    ("anything-but of a number", a({"anything-but": 123}), {"a": 456}, True),
    ("anything-but of numbers", a({"anything-but": [100, 200]}), {"a": 200}, False),
    ("anything-but, missing", a({"anything-but": "x"}), {}, False),
    ("anything-but of a prefix", a({"anything-but": {"prefix": "in"}}), {"a": "init"}, False),
    ("anything-but of prefixes", a({"anything-but": {"prefix": ["in", "er"]}}), {"a": "ok"}, True),
    ("anything-but of a suffix", a({"anything-but": {"suffix": "34"}}), {"a": "x-34"}, False),
    ("anything-but of suffixes", a({"anything-but": {"suffix": ["1", "2"]}}), {"a": "x3"}, True),
    ("anything-but in any case", a({"anything-but": {"equals-ignore-case": "Stop"}}),
     {"a": "STOP"}, False),
    ("anything-but of several in any case",
     a({"anything-but": {"equals-ignore-case": ["Stop", "Busy"]}}), {"a": "idle"}, True),
    ("anything-but of a wildcard", a({"anything-but": {"wildcard": "*/bin/*.jar"}}),
     {"a": "/usr/bin/x.jar"}, False),
    ("anything-but of wildcards", a({"anything-but": {"wildcard": ["*.jar", "*.class"]}}),
     {"a": "x.py"}, True),
    ("numeric with two bounds", a({"numeric": [">", 0, "<=", 5]}), {"a": 5}, True),
    ("numeric beyond a bound", a({"numeric": [">", 0, "<=", 5]}), {"a": 5.01}, False),
    ("numeric with an exponent", a({"numeric": ["=", 3.018e2]}), {"a": 301.8}, True),
    ("a number as it is written", a(300), {"a": 300.0}, True),
    ("cidr", a({"cidr": "10.0.0.0/24"}), {"a": "10.0.0.255"}, True),
    ("cidr of another", a({"cidr": "10.0.0.0/24"}), {"a": "10.0.1.0"}, False),
    ("cidr of version 6", a({"cidr": "2001:db8::/32"}), {"a": "2001:db8::7"}, True),
    ("null", a(None), {"a": None}, True),
    ("an empty text", a(""), {"a": ""}, True),
    ("exists", a({"exists": True}), {"a": 1}, True),
    ("exists not", a({"exists": False}), {"b": 1}, True),
    ("several matchers", a({"prefix": "x"}, {"suffix": "y"}, 5), {"a": 5}, True),
    ("$or", {"$or": [{"m": ["CPU"]}, {"n": ["EC2"]}]}, {"n": "EC2"}, True),
    ("$or of neither", {"$or": [{"m": ["CPU"]}, {"n": ["EC2"]}]}, {"n": "ES"}, False),
    ("$or with and", {"s": ["cw"], "$or": [{"m": ["CPU"]}, {"t": ["T"], "n": ["EC2"]}]},
     {"s": "cw", "t": "T"}, False),
    ("$or in $or", {"$or": [{"m": ["CPU"]}, {"t": ["T"], "$or": [{"i": [1]}, {"p": [2]}]}]},
     {"t": "T", "p": 2}, True),
    ("$or in a list of objects", {"d": {"k": ["x"], "$or": [{"v": [1]}, {"w": [2]}]}},
     {"d": [{"k": "x"}, {"v": 1}]}, False),
)  # fmt: skip
DIFFERENT: tuple[Case, ...] = (  # with Amazon's result
    ("anything-but in a list", a({"anything-but": "no"}), {"a": ["no", "yes"]}, True),
    ("anything-but of an object", a({"anything-but": "no"}), {"a": {"b": 1}}, False),
    ("anything-but of an empty list", a({"anything-but": "no"}), {"a": []}, False),
    ("two bounds, two members", a({"numeric": [">", 5, "<", 8]}), {"a": [1, 9]}, False),
    ("a numeric text", a({"numeric": [">", 5]}), {"a": "10"}, False),
    ("exists of an object", a({"exists": True}), {"a": {"b": 1}}, False),
    ("exists not, of an object", a({"exists": False}), {"a": {"b": 1}}, True),
    ("exists not, of an empty list", a({"exists": False}), {"a": []}, True),
    ("a final sigma", a({"equals-ignore-case": "ΟΔΟΣ"}), {"a": "οδος"}, False),
    ("letters beyond U+FFFF", a({"equals-ignore-case": "\U00010c80"}), {"a": "\U00010cc0"}, False),
    ("exists of an empty list", a({"exists": True}), {"a": []}, False),
    ("a list in a list", a("x"), {"a": [["x"]]}, True),
)


@pytest.mark.parametrize(("name", "pattern", "detail", "matches"), AGREEING + DIFFERENT)
def test_the_hub_agrees_with_event_ruler_but_for_the_listed_cases(
    name: str, pattern: dict[str, Any], detail: dict[str, Any], matches: bool
) -> None:
    """By every strategy."""
    expected = matches is not any(name == each[0] for each in DIFFERENT)
    node = parse_eventbridge({"detail": pattern})
    assert holds(node, event(detail)) is expected
    for strategy, make in STRATEGIES.items():
        matcher = FilterMatcher(make())
        matcher.add(1, specs_of(node))
        assert matcher.match(event(detail)) == [1] * expected, strategy


def test_the_names_are_distinct() -> None:
    names = [case[0] for case in AGREEING + DIFFERENT]
    assert len(names) == len(set(names)) == 84


def test_fields_of_amazons_envelope() -> None:
    """The last event of the README, and a pattern on its account, region and resources."""
    attributes = {
        "account": "123456789012",
        "region": "us-east-1",
        "resources": ["arn:aws:ec2:us-east-1:123456789012:instance/i-000000aaaaaa00000"],
        "state": "running",
    }
    pattern = {
        "account": ["123456789012"],
        "region": [{"prefix": "us-"}],
        "resources": [{"wildcard": "arn:aws:ec2:*:instance/*"}],
        "detail": {"state": ["running"]},
    }
    assert holds(parse_eventbridge(pattern), event(attributes))
    assert not holds(parse_eventbridge({**pattern, "region": ["eu-1"]}), event(attributes))
