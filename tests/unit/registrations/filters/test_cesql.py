"""CESQL: the conformance tests of its specification, and what its filters are in the tree."""

import gc
import json
import random
import string
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File
from random import Random
from typing import Any

import pytest
import yaml

from eventhub.event.cloudevents import read_structured
from eventhub.event.inbound import stored_bytes
from eventhub.event.protobuf_codec import decode
from registrations.filters.ast import Expression
from registrations.filters.cesql.evaluation import CesqlOutcome, evaluate
from registrations.filters.cesql.parser import parse_terms
from registrations.filters.cesql.terms import CesqlError
from registrations.filters.errors import FilterSyntax, FilterTooLarge
from registrations.filters.evaluate import holds
from registrations.filters.event_values import EventValues
from registrations.filters.explain import explain
from registrations.filters.expressions import result_of
from registrations.filters.languages import parse
from registrations.filters.values import MISSING
from tests.unit.registrations.filters.trees import event

TCK = sorted((File(__file__).parent / "cesql_tck").glob("*.yaml"))
REQUIRED = {"specversion": "1.0", "id": "i", "source": "/s", "type": "t"}
# Cases whose outcome the specification contradicts. As filters they agree: neither matches.
CONTRADICTED = {"NOT 10": "3.7 casts every integer to a boolean, as BOOL(10) in the same tests"}


class Loader(yaml.SafeLoader):
    """A loader that leaves times as texts."""


Loader.yaml_implicit_resolvers = {
    first: [one for one in resolvers if one[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def cases(file: File) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.load(file.read_text(), Loader)["tests"]
    return found


def outcome(text: str, attributes: dict[str, Any]) -> CesqlOutcome:
    try:
        term = parse_terms(text)
    except FilterSyntax as error:
        return CesqlOutcome(False, CesqlError("parse", error.message))
    return evaluate(term, lambda name: attributes.get(name.lower(), MISSING))


def matches(text: str, attributes: dict[str, Any]) -> bool:
    """Return whether the hub's event matches the filter; a refused filter matches nothing."""
    taken = read_structured(json.dumps(attributes).encode())
    try:
        node = parse("cesql", text).node
    except FilterSyntax:
        return False
    return holds(node, decode(stored_bytes(taken, client="c", mask=1)))


@pytest.mark.parametrize("file", TCK, ids=lambda file: file.stem)
def test_the_conformance_tests_of_the_specification(file: File) -> None:
    for case in cases(file):
        text = str(case["expression"])
        attributes = {**case.get("event", REQUIRED), **case.get("eventOverrides", {})}
        value, error = outcome(text, attributes)
        expected = (case.get("result", False), case.get("error"))
        if text not in CONTRADICTED:
            found = (value, error.kind if error else None)
            assert (*found, type(value)) == (*expected, type(expected[0])), case["name"]
        is_true = expected[0] is True and expected[1] is None
        assert matches(text, attributes) is is_true, case["name"]


def test_no_conformance_test_is_lost() -> None:
    assert (len(TCK), sum(len(cases(file)) for file in TCK)) == (18, 275)


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("type LIKE 'order.%' AND total > 50", '(and (prefix @type "order.") (> total 50))'),
        ("country in ('NO', \"SE\")", '(in country "NO" "SE")'),
        ("country <> 'NO'", '(and (!= country "NO") (!= country null))'),
        ("subject like '%x' or not exists subject", '(suffix @key "x")'),
        ("not exists subject or subject = 'x'", '(or (not (exists @key)) (= @key "x"))'),
        # an error of the first part excludes the event, unless it was tested for
        ("a = 'x' OR b = 'y'", '(or (= a "x") (and (!= a null) (= b "y")))'),
        ("(EXISTS a AND a = 'x') OR b = 'y'", '(or (= a "x") (= b "y"))'),
        ("a = 'x' OR a = 'y'", '(or (= a "x") (= a "y"))'),
        ("n = 5", '(in n 5 "5")'),
        ("n = '5'", '(in n "5" 5)'),
        ("5 < n", "(> n 5)"),
        ("a NOT IN ('x')", '(and (!= a "x") (!= a null))'),
        ("1 = n", '(in n "1" 1 true)'),
        ("a = '1.0'", '(= a "1.0")'),
        ("EXISTS a AND a LIKE 'x%'", '(prefix a "x")'),
        ("ehpriority = '3'", '(in @priority "3" 3)'),
        ("source = '/' AND EXISTS id", '(or (= @node "/") (not (exists @node)))'),
        ("a LIKE '%*%'", '(substring a "*")'),
        ("a LIKE 'x*%\\%y'", '(wildcard a "x\\\\**%y")'),
        ("ok", "(= ok true)"),
        ("1 / 0 = 1 OR TRUE", "false"),
        (f"'{'a' * 8_000}' LIKE '%{'a_' * 2_000}b%' OR TRUE", "false"),  # too much work
        ("a LIKE 'x_'", '(and (wildcard a "x*") (cesql "a LIKE \'x_\'"))'),
        ("type = 't' AND LOWER(a) = 'x'", '(and (= @type "t") (cesql "LOWER(a) = \'x\'"))'),
        ("hop < ttl or LENGTH(a) = 1", '(cesql "hop < ttl or LENGTH(a) = 1")'),
    ],
)  # fmt: skip
def test_tests_of_one_attribute_are_those_of_the_tree(text: str, predicate: str) -> None:
    assert parse("cesql", text).predicate == predicate
    assert parse("predicate", predicate).node == parse("cesql", text).node


@pytest.mark.parametrize(
    ("text", "says", "place"),
    [
        ("a = 'x", "no closing quote", (1, 5)),
        ("a =\n(b", "ends too early", (2, 3)),
        ("a == 1", "= does not fit", (1, 4)),
        ("total > 1.5", "integers only", (1, 10)),
        ("address.city = 'x'", "letters and digits", (1, 8)),
        ("a = 1 && b = 2", "Write AND", (1, 7)),
        ("order_id = 5", "letters and digits", (1, 1)),
        ("a = 3000000000", "32 bits", (1, 5)),
        ("a LIKE 5", "pattern in quotes", (1, 8)),
        ("a AND NOW() = 1", "no function NOW of 0 values", (1, 7)),
        ("LEFT(a) = 'x'", "no function LEFT of 1 value", (1, 1)),
        ("LENGTH(a)", "true or false", (1, 1)),
        ("data = 'x'", "cannot read the data", (1, 1)),
    ],
)
def test_an_error_says_where_it_is_and_what_to_do(
    text: str, says: str, place: tuple[int, int]
) -> None:
    with pytest.raises(FilterSyntax, match=says) as caught:
        parse("cesql", text)
    assert (caught.value.details["line"], caught.value.details["column"]) == place


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("(" * 40 + "TRUE" + ")" * 40, "depth_max"),
        ("a" + " + 1" * 40 + " = 1", "depth_max"),
        ("NOT " * 40 + "a", "depth_max"),
        ("a = '" + "x" * 17_000 + "'", "chars_max"),
        ("TRUE" + " AND TRUE" * 1_700, "parts_max"),
        (" OR ".join(f"a{n} = 'x'" for n in range(100)), "parts_max"),  # 100 * 99 / 2 that exist
        ("LENGTH(CONCAT(a" + ", a" * 1_100 + ")) = 1", "parts_max"),
        (" XOR ".join(["a = 1"] * 20), "parts_max"),
        ("(" * 30 + "a = 1" + " AND b = 1) OR c = 1)" * 15, "parts_max"),
        ("(b = LENGTH(c) XOR " * 29 + "b = 1" + ")" * 29, "parts_max"),
        # each part is small, or left out in the end
        (" XOR ".join(["(FALSE AND (" + " XOR ".join("bcdefg") + "))"] * 16), "steps_max"),
    ],
)
def test_an_expression_is_bounded(text: str, bound: str) -> None:
    with pytest.raises(FilterTooLarge) as caught, calls_at_most(300_000):
        parse("cesql", text)
    assert bound in caught.value.details


@contextmanager
def calls_at_most(most: int) -> Iterator[None]:
    """Let the code call at most so many functions, those of C included."""
    count = 0

    def counted(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")
        assert count <= most

    sys.setprofile(counted)
    try:
        yield
    finally:
        sys.setprofile(None)


def test_a_pattern_takes_little_memory_and_only_as_long_as_its_filter() -> None:
    words = [f"{one}{other}" for one in "abcdefghij" for other in string.ascii_lowercase]
    tracemalloc.start()
    try:
        for _ in range(4):
            random.shuffle(words)
            kept = parse("cesql", f"LOWER(a) LIKE '{'%'.join(words * 20)[:16_000]}%'")
            holds(kept.node, event({"a": "x"}))
        gc.collect()
        most = 30 * 16_000
        assert tracemalloc.get_traced_memory()[0] < most
    finally:
        tracemalloc.stop()


def test_the_deepest_expression_can_be_evaluated_and_printed() -> None:
    text = "f XOR " + "(" * 31 + "LENGTH(a) = 1" + ")" * 31
    found = parse("cesql", text)
    assert parse("predicate", found.predicate).node == found.node
    assert holds(found.node, event({"f": "false", "a": "x"}))


@pytest.mark.parametrize(
    "text",
    [
        "LENGTH(CONCAT(" + "a, " * 90 + "a)) > 1",
        "a LIKE '" + "x_" * 2_000 + "'",
        "a LIKE '%" + "x_" * 2_000 + "y%'",
    ],
)
def test_an_evaluation_is_bounded(text: str) -> None:
    node = parse("cesql", text).node
    assert not holds(node, event({"a": "x" * 1_000_000}))


TEXTS = ("x", "y", "5", "10", "-1", "true", "", "ab")
ATTRIBUTES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("ab", (*TEXTS, 5, 10, -1, 0, MISSING)),
    "s": (*TEXTS, MISSING),
    "f": (True, False, "true", "FALSE", "x", MISSING),
}


def _expression(random: Random, depth: int) -> str:
    """Return a random expression whose value is true or false."""
    if depth and random.random() < 0.6:
        one, other = (_expression(random, depth - 1) for _ in range(2))
        joined = (f"({one}) {op} ({other})" for op in ("AND", "OR", "XOR", "="))
        return random.choice((*joined, f"NOT ({one})"))
    name, text, number = random.choice("ab"), random.choice(TEXTS), random.choice((5, 10, 0))
    relation = random.choice(("=", "!=", "<", "<=", ">", ">="))
    equality = random.choice(("=", "<>"))
    pattern = random.choice(("x", "%", "x%", "%b", "_", "a_", "%1%", "_%0"))
    return random.choice((
        f"{name} {equality} '{text}'", f"'{text}' = s", f"{name} {relation} {number}",
        f"{number} {relation} {name}", f"EXISTS {name}", "f", f"f {equality} TRUE", "NOT f",
        f"s LIKE '{pattern}'", f"s NOT LIKE '{pattern}'", f"{name} IN ('{text}', {number})",
        f"{name} NOT IN ('{text}', 'x')", f"{name} + 1 {relation} b", f"a {relation} b",
        f"LENGTH({name}) > 1", f"CONCAT(s, f) = '{text}'",
    ))  # fmt: skip


def test_the_tree_matches_what_the_specification_evaluates() -> None:
    random = Random(7)
    matched = 0
    for _ in range(1_500):
        text = _expression(random, 3)
        node, term = parse("cesql", text).node, parse_terms(text)
        for _ in range(4):
            drawn = {name: random.choice(values) for name, values in ATTRIBUTES.items()}
            given = {name: value for name, value in drawn.items() if value is not MISSING}
            value, error = evaluate(term, lambda name, given=given: given.get(name, MISSING))
            expected = value is True and error is None
            if text == "f":
                expected = given.get("f") is True
            assert holds(node, event(given)) is expected, (text, given, error)
            matched += expected
    assert matched > 1_000


NO_VALUES = (None, {}, {"x": 1}, [], [None])
WHOLE = (0, 1, 5, 7, 10, 10**16, 1e16, 1e20, -1e300, 1.0)
ALL = (*TEXTS, "1.0", "7.5", "05", "tRuE", *WHOLE, 7.5, True, False, *NO_VALUES)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (
            ("n = 'x'", "n = '1.0'", "n = '10'", "n = '7.5'", "n = 'true'", "n = '1e+16'"), ALL,
        ),
        (("n = '10000000000000000'", "n = '100000000000000000000'", "n != 'x'"), ALL),
        (("5 = n", "1 = n", "7 != n", "0 <> n", "TRUE = n", "FALSE = n", "'05' = n"), ALL),
        (("n IN ('x', 5)", "n NOT IN ('1.0', 1)", "n NOT IN ('x', 'y')", "n IN (FALSE)"), ALL),
        (("EXISTS n", "NOT EXISTS n OR n = 'x'", "n LIKE '%'", "n NOT LIKE '10'"), ALL),
        (
            ("n != 5", "n = 1 OR n != 1", "n >= 0 OR TRUE", "n < 5 XOR n = 7", "NOT (n <= 5)"),
            (*WHOLE, "x", "10", *NO_VALUES),
        ),
        (("n NOT LIKE 'x%'", "n LIKE '1_'", "n NOT LIKE '_0' OR n = 5"), (*TEXTS, *NO_VALUES)),
        (("n = TRUE", "n XOR TRUE", "NOT n"), (*TEXTS, True, False, *NO_VALUES)),
    ],
)  # fmt: skip
def test_the_tree_matches_what_is_evaluated_for_values_of_json(
    texts: tuple[str, ...], values: tuple[Any, ...]
) -> None:
    for text in texts:
        node, whole = parse("cesql", text).node, Expression("cesql", text)
        for value in values:
            taken = event({"n": value})
            found = result_of(whole, EventValues(taken))
            assert holds(node, taken) is found.holds, (text, value, found)


def test_an_explanation_names_the_error_and_the_values() -> None:
    node = parse("cesql", "LOWER(country) = 'no'").node
    found = explain(node, event({"country": "NO"}))
    assert (found.op, found.held, found.evaluated[0].values) == ("cesql", True, ("NO",))
    assert "country is missing" in explain(node, event()).why
    assert "it is false" in explain(node, event({"country": "SE"})).why


def test_attributes_are_those_of_the_cloud_event() -> None:
    taken = event({"total": 5}, key="k", node="/n", body=b"{}", content_type="application/json",
                  traceparent="00-1", priority=3)  # fmt: skip
    for text in (
        "specversion = '1.0' AND datacontenttype = 'application/json'",
        "subject = 'k' AND SOURCE = '/n' AND domain = 'd' AND type = 't' AND Id = ''",
        "traceparent LIKE '00%' AND ehpriority = 3 AND ehpriority > 2 AND total + 1 = 6",
        "NOT EXISTS time AND NOT EXISTS expirytime AND EXISTS specversion",
    ):
        assert holds(parse("cesql", text).node, taken), text
    assert not holds(parse("cesql", "EXISTS datacontenttype").node, event())


def test_a_field_is_read_without_the_rest_of_the_event() -> None:
    taken = event({"cannot": "\ud800"}, traceparent="00-1", audience=["a"])
    node = parse("cesql", "traceparent LIKE '00%' AND ehaudience = '[\"a\"]'").node
    assert holds(node, taken)


def test_the_hint_at_other_languages_is_left_out_for_a_keyword() -> None:
    with pytest.raises(FilterSyntax) as caught:
        parse("cesql", "NOT")
    assert "valid filter" not in caught.value.message
