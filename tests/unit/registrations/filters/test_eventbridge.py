"""EventBridge's patterns: what they ask for, and how errors name the field."""

from typing import Any

import pytest

from eventhub.base import limits
from eventhub.base.errors import (
    BadRequest,
    BodyNotFilterable,
    EventHubError,
    InvalidField,
    UnknownField,
)
from registrations.filters.errors import FilterTooLarge
from registrations.filters.evaluate import holds
from registrations.filters.eventbridge import parse_eventbridge
from registrations.filters.predicate import parse_predicate
from tests.unit.registrations.filters.trees import event


@pytest.mark.parametrize(
    ("pattern", "predicate"),
    [
        ({"source": ["crm"]}, "(= @source 'crm)"),
        ({"detail-type": ["a", "b"], "domain": ["d"]}, "(and (in @type 'a 'b) (= @domain 'd))"),
        ({"id": ["7"], "version": ["1"]}, '(and (= @id "7") (= @version "1"))'),
        ({"time": [{"prefix": "2026-11"}]}, '(prefix @time "2026-11")'),
        ({"detail": {"a": {"b": {"c": [1]}}}}, "(= a.b.c 1)"),
        ({"detail": {"a.b": [None]}}, "(= a.b null)"),
        ({"detail": {"source": ["x"], "detail": ["y"]}}, "(and (= source 'x) (= detail 'y))"),
        ({"detail": {"a": [1, {"prefix": "x"}, True, {"exists": False}]}},
         "(or (in a 1 true) (prefix a 'x) (not (exists a)))"),
        ({"detail": {"a": [{"suffix": ".png"}]}}, "(suffix a '.png)"),
        ({"detail": {"a": [{"wildcard": "x*\\*"}]}}, '(wildcard a "x*\\\\*")'),
        ({"detail": {"a": [{"exists": True}]}}, "(exists a)"),
        ({"detail": {"a": [{"numeric": ["=", 5]}]}}, "(= a 5)"),
        ({"detail": {"a": [{"numeric": [">", 0, "<=", 5.5]}]}}, "(and (> a 0) (<= a 5.5))"),
        ({"detail": {"a": [{"numeric": ["<", 5, ">=", 0]}]}}, "(and (< a 5) (>= a 0))"),
        ({"detail": {"a": [{"anything-but": "x"}]}}, "(and (exists a) (not (= a 'x)))"),
        ({"detail": {"a": [{"anything-but": [1, 2]}]}}, "(and (exists a) (not (in a 1 2)))"),
        ({"detail": {"a": [{"anything-but": {"prefix": "x"}}]}},
         "(and (exists a) (not (prefix a 'x)))"),
        ({"detail": {"a": [{"anything-but": {"suffix": ["x", "y"]}}]}},
         "(and (exists a) (not (or (suffix a 'x) (suffix a 'y))))"),
        ({"source": ["s"], "$or": [{"detail": {"a": [1]}}, {"domain": ["d"]}]},
         "(and (= @source 's) (or (= a 1) (= @domain 'd)))"),
        ({"detail": {"a": {"b": [1], "$or": [{"c": [2]}, {"d": {"e": [3]}, "f": [4]}]}}},
         "(or (within a (and (= b 1) (= c 2))) (within a (and (= b 1) (= d.e 3) (= f 4))))"),
        ({"data": {"a": {"b": [1]}}, "detail": {"c": [2]}}, "(and (= data.a.b 1) (= c 2))"),
        ({"data": ["x"]}, "(= data 'x)"),
        ({"detail": {"data": {"a": [1]}}}, "(= data.a 1)"),
        ({"data": {"$or": [{"a": [1]}, {"b": [2]}]}}, "(or (= data.a 1) (= data.b 2))"),
        ({"data": {"a": [1], "b": [2]}}, "(within data (and (= a 1) (= b 2)))"),
        ({"$or": [{"$or": [{"source": ["a"]}, {"source": ["b"]}]}, {"source": ["c"]}]},
         "(or (or (= @source 'a) (= @source 'b)) (= @source 'c))"),
    ],
)  # fmt: skip
def test_a_pattern_equals_a_predicate(pattern: dict[str, Any], predicate: str) -> None:
    assert parse_eventbridge(pattern) == parse_predicate(predicate)


@pytest.mark.parametrize(
    ("allowed", "attributes", "holding"),
    [
        ([{"anything-but": "x"}], {"a": "y"}, True),
        ([{"anything-but": "x"}], {"a": "x"}, False),
        ([{"anything-but": "x"}], {}, False),
        ([{"anything-but": "x"}], {"a": None}, True),
        ([{"anything-but": "x"}], {"a": ["x", "y"]}, False),  # Amazon's would hold
        ([{"anything-but": "x"}], {"a": []}, True),
        ([{"anything-but": [1, 2]}], {"a": 3}, True),
        ([{"anything-but": [1, 2]}], {"a": 2.0}, False),
        ([{"anything-but": {"prefix": "us-"}}], {"a": "eu-1"}, True),
        ([{"anything-but": {"prefix": "us-"}}], {"a": "us-1"}, False),
        ([{"anything-but": {"prefix": "us-"}}], {"a": 5}, True),
        ([{"anything-but": {"wildcard": "*/lib/*"}}], {"a": "/usr/lib/x"}, False),
        ([{"anything-but": {"wildcard": "*/lib/*"}}], {"a": "/usr/bin/x"}, True),
        ([{"exists": False}], {}, True),
        ([{"exists": False}], {"a": None}, False),
        ([{"exists": True}], {"a": {"b": 1}}, True),  # objects too, unlike Amazon's
        ([{"exists": True}, {"exists": False}], {}, True),
        ([None], {"a": None}, True),
        ([None], {}, False),
        ([""], {"a": ""}, True),
        ([1], {"a": True}, False),
        ([{"numeric": [">", 0, "<=", 5]}], {"a": 5}, True),
        ([{"numeric": [">", 0, "<=", 5]}], {"a": 0}, False),
        ([{"numeric": [">", 0]}], {"a": "5"}, True),  # a numeric text
        ([{"numeric": ["=", 5]}], {"a": "5"}, False),
        ([{"numeric": [">", 0, "<", 5]}], {"a": [-1, 9]}, True),  # a member for each bound
        (["b"], {"a": ["a", "b"]}, True),
    ],
)
def test_values(allowed: list[Any], attributes: dict[str, Any], holding: bool) -> None:
    assert holds(parse_eventbridge({"detail": {"a": allowed}}), event(attributes)) is holding


def a(*allowed: Any) -> dict[str, Any]:
    return {"detail": {"a": list(allowed)}}


@pytest.mark.parametrize(
    ("pattern", "error", "field", "says"),
    [
        ({}, InvalidField, None, "is empty"),
        ([], InvalidField, None, "an object"),
        ({"source": "crm"}, InvalidField, "source", "are in a list"),
        ({"source": {"prefix": "c"}}, InvalidField, "source", "are in a list"),
        ({"source": []}, InvalidField, "source", "are in a list"),
        ({"source": [["crm"]]}, InvalidField, "source", "a text, a number"),
        ({"owner": ["1"]}, UnknownField, "owner", "attributes of the event are in `detail`"),
        ({"body": ["1"]}, BodyNotFilterable, "body", "`data`"),
        ({"detail": ["x"]}, InvalidField, "detail", "an object"),
        ({"detail": {}}, InvalidField, "detail", "is empty"),
        ({"detail": {"a": {}}}, InvalidField, "detail.a", "is empty"),
        ({"detail": {"a": 5}}, InvalidField, "detail.a", "are in a list"),
        ({"detail": {"a": {"b.c": [1]}}}, InvalidField, "detail.a.b.c", "no dot"),
        ({"detail": {"a.b": {"c": [1]}}}, InvalidField, "detail.a.b.c", "no dot"),
        (a({}), InvalidField, "detail.a", "one name"),
        (a({"prefix": "a", "suffix": "b"}), InvalidField, "detail.a", "one name"),
        (a({"like": "x"}), UnknownField, "detail.a.like", "prefix, suffix"),
        (a({"prefix": 5}), InvalidField, "detail.a.prefix", "takes a text"),
        (a({"prefix": ["a"]}), InvalidField, "detail.a.prefix", "takes a text"),
        (a({"wildcard": "\\a"}), InvalidField, "detail.a.wildcard", "backslash"),
        (a({"equals-ignore-case": 5}), InvalidField, "detail.a.equals-ignore-case", "takes a text"),
        (a({"prefix": {"equals-ignore-case": 5}}), InvalidField,
         "detail.a.prefix.equals-ignore-case", "takes a text"),
        (a({"cidr": "10.0.0.0"}), InvalidField, "detail.a.cidr", "10.0.0.0/8"),
        (a({"anything-but": []}), InvalidField, "detail.a.anything-but", "at least one value"),
        (a({"anything-but": [[1]]}), InvalidField, "detail.a.anything-but", "a text, a number"),
        (a({"anything-but": {"cidr": "x"}}), UnknownField, "detail.a.anything-but.cidr", "prefix"),
        (a({"anything-but": {"numeric": ["=", 1]}}), UnknownField,
         "detail.a.anything-but.numeric", "prefix, suffix, wildcard"),
        (a({"anything-but": {"prefix": [1]}}), InvalidField,
         "detail.a.anything-but.prefix", "takes a text"),
        (a({"anything-but": {"prefix": []}}), InvalidField,
         "detail.a.anything-but.prefix", "at least one value"),
        (a({"numeric": []}), InvalidField, "detail.a.numeric", "takes a list"),
        (a({"numeric": [">"]}), InvalidField, "detail.a.numeric", "takes a list"),
        (a({"numeric": ">5"}), InvalidField, "detail.a.numeric", "takes a list"),
        (a({"numeric": [">", "5"]}), InvalidField, "detail.a.numeric", "numbers only"),
        (a({"numeric": [">", True]}), InvalidField, "detail.a.numeric", "numbers only"),
        (a({"numeric": ["!=", 5]}), InvalidField, "detail.a.numeric", "only"),
        (a({"numeric": [">", 5, ">=", 6]}), InvalidField, "detail.a.numeric", "two bounds"),
        (a({"numeric": [">", 5, "=", 6]}), InvalidField, "detail.a.numeric", "cannot be combined"),
        (a({"exists": 1}), InvalidField, "detail.a.exists", "true or false"),
        ({"$or": [{"source": ["a"]}]}, InvalidField, "$or", "two objects"),
        ({"$or": {"source": ["a"]}}, InvalidField, "$or", "two objects"),
        ({"$or": [{"source": ["a"]}, 5]}, InvalidField, "$or.1", "an object"),
        ({"$or": [{"source": ["a"]}, {"detail": {"$or": [{"x": 5}, {}]}}]}, InvalidField,
         "$or.1.detail.$or.0.x", "are in a list"),
        ({"detail": {"$or": [{"a": [1]}, {"b": [2]}, {}]}}, InvalidField,
         "detail.$or.2", "is empty"),
    ],
)  # fmt: skip
def test_errors_name_the_field(
    pattern: Any, error: type[EventHubError], field: str | None, says: str
) -> None:
    with pytest.raises(BadRequest, match=says) as caught:
        parse_eventbridge(pattern)
    assert type(caught.value) is error
    assert caught.value.field == field


def nested(depth: int) -> dict[str, Any]:
    """Return `$or` nested in `$or`."""
    pattern: dict[str, Any] = {"source": ["a"]}
    for _ in range(depth):
        pattern = {"$or": [pattern, {"domain": ["b"]}]}
    return pattern


def objects(depth: int) -> dict[str, Any]:
    pattern: Any = [1]
    for _ in range(depth):
        pattern = {"a": pattern}
    return {"detail": pattern}


def test_a_pattern_beyond_a_limit_is_refused() -> None:
    wide = a(*range(limits.FILTER_PARTS_MAX))
    long = {"detail": {"a" * (limits.PATH_CHARS_MAX + 1): [1]}}
    for pattern in (wide, long, nested(limits.FILTER_DEPTH_MAX), nested(200), objects(200)):
        with pytest.raises(FilterTooLarge):
            parse_eventbridge(pattern)


def test_an_error_of_depth_or_length_has_the_field() -> None:
    deep = {"detail": {"x": [1], "b": nested(limits.FILTER_DEPTH_MAX)}, "source": ["a"]}
    deep["detail"]["b"] = {"$or": [{"c": [1]}, objects(70)["detail"]]}
    long = {"detail": {"b": {"a" * limits.PATH_CHARS_MAX: [1]}}}
    for pattern, bound, field in (
        (nested(40), "depth_max", "$or.0" + ".$or.0" * 32),
        (deep, "depth_max", "detail.b.$or.1.a.a.a"),
        (long, "path_chars_max", "detail.b.aaa"),
    ):
        with pytest.raises(FilterTooLarge) as caught:
            parse_eventbridge(pattern)
        assert bound in caught.value.details
        assert caught.value.field is not None
        assert caught.value.field.startswith(field)
        assert len(caught.value.field) <= 301


def test_a_pattern_at_the_limits_is_accepted() -> None:
    assert holds(parse_eventbridge(nested(limits.FILTER_DEPTH_MAX - 1)), event(source="a"))
    assert holds(parse_eventbridge(a(*range(limits.FILTER_PARTS_MAX - 2))), event({"a": 7}))
    inner: Any = 1
    for _ in range(limits.FILTER_DEPTH_MAX):
        inner = {"a": inner}
    assert holds(parse_eventbridge(objects(limits.FILTER_DEPTH_MAX)), event(inner))
