"""Patterns are parsed, printed back, and refused with a position and a hint."""

from itertools import product

import pytest

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from registrations.filters.ast import And, Compare, Const, OfType, Path
from registrations.filters.errors import FilterSyntax, FilterTooLarge
from registrations.patterns.ast import Combined, Do, Element, Pattern, VariablePath, Where
from registrations.patterns.errors import PatternTooLarge
from registrations.patterns.parser import parse_pattern
from registrations.patterns.printed import print_pattern

FAR = limits.PATTERN_WITHIN_S_MAX // 86_400


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("MyAlarm", "{MyAlarm}"),
        ("Ev1: MyAlarm | $Priority > 5", "{Ev1: MyAlarm | $Priority > 5}"),
        ("Ev1: MyAlarm within 5m", "{Ev1: MyAlarm} within 5m"),
        ("{a:A};{b:B}", "{a: A}; {b: B}"),
        ("{a: A}\n;\n{b: B}", "{a: A}; {b: B}"),
        ("(({A}))", "{A}"),
        ("({A}; {B}); {C}", "{A}; {B}; {C}"),
        ("{A}; ({B}; {C})", "{A}; ({B}; {C})"),
        ("({A} || {B}) && {C}", "({A} || {B}) && {C}"),
        ("({A} && {B}) || {C}", "{A} && {B} || {C}"),
        ("({A} butnot {B}) butnot {C}", "({A} butnot {B}) butnot {C}"),
        ("{A} butnot ({B} && {C})", "{A} butnot ({B} && {C})"),
        ("{v[1..*]: N::A, N::B | $x}", "{v[1..*]: N::A, N::B | $x}"),
        ("{v[ 2 .. 4 ]: A}", "{v[2..4]: A}"),
        ("{a: A} where a.x == 1 where a.y == 2", "{a: A} where a.x == 1 where a.y == 2"),
        ("({a: A}; {b: B}) where not (a.x < b.x)", "({a: A}; {b: B}) where not (a.x < b.x)"),
        ("{a: A} where a.header.time > 'x'", "{a: A} where a.header.time > 'x'"),
        ("{a: A} where a.'disk usage' + 1 > 2", "{a: A} where a.'disk usage' + 1 > 2"),
        ("{a: A} where a.x", "{a: A} where a.x"),
        ("{a: A} where -count(a) < 1", "{a: A} where -count(a) < 1"),
        ("{a: A} where a.ok and exist a", "{a: A} where a.ok and exist a"),
        ("{a: A} do notify()", "{a: A} do notify()"),
        ("{a: A} do notify(a) to 'o\\'k'", "{a: A} do notify(a) to 'o\\'k'"),
        ("{a: A} do increment n", "{a: A} do increment n by 1"),
        ("{a: A} do announce(T,{})", "{a: A} do announce(T, {})"),
        ("{A} within 60s", "{A} within 1m"),
        ("{A} within 24h", "{A} within 1d"),
        ("{A} within 1500ms", "{A} within 1500ms"),
        ("{A} once last 3 per $u within 2h", "{A} per $u within 2h last 3 once"),
        ("{A} per $'a b' repeat", "{A} per $'a b'"),
        ("{a: A} where last(a.x) > 1 last 3", "{a: A} where last(a.x) > 1 last 3"),
        ("{t: Time::Tick | $handle == 'h'}", "{t: Time::Tick | $handle == 'h'}"),
    ],
)
def test_a_pattern_is_printed_back(text: str, printed: str) -> None:
    assert print_pattern(parse_pattern(text)) == printed
    assert parse_pattern(printed) == parse_pattern(text)


def test_the_tree_has_filters_of_all_languages() -> None:
    pattern = parse_pattern("({a: A | $x > 1} && {v[2..3]: B}) where a.x == max(v.x) within 2s")
    element = Element(
        And((OfType(None, "A"), Compare(">", Path("x"), Const(1)))), "a", is_sequence=False
    )
    sequence = Element(OfType(None, "B"), "v", True, 2, 3)
    condition = Compare(
        "=",
        VariablePath("a.x", variable="a", component=Path("x")),
        VariablePath("max(v.x)", variable="v", component=Path("x"), function="max"),
    )
    part = Where(Combined("&&", element, sequence), condition)
    assert pattern == Pattern(part, within_us=2_000_000)


def test_actions_belong_to_the_part_before_them() -> None:
    part = parse_pattern("({a: A} do notify(a)); {b: B} do notify(b)").part
    assert isinstance(part, Combined)
    assert isinstance(part.left, Do)
    assert isinstance(part.right, Do)


LONG = """({v[3..10]: A | $x > 1}; {b: B} butnot {C}) where span(v.x) < 5
    do notify(v, b) to 's', announce(C::D, {x = b.x, n = count(v)}), increment n per $u last 9"""
WORDS = ("last", "x", "(", ")", "{", "}", "[", ",", ":", ";", "|", "5", "'t'", "$p", "=", "..", "")


def test_a_mistake_after_any_character_has_a_position() -> None:
    """Some were answered with a fault of the hub, such as a bracket that is not closed."""
    for end, word in product(range(len(LONG)), WORDS):
        text = f"{LONG[:end]} {word}"
        try:
            parse_pattern(text)
        except (FilterSyntax, PatternTooLarge) as error:
            found = error.details
            line = text.split("\n")[found["line"] - 1]
            assert 1 <= found["column"] <= len(line) + 1, text


@pytest.mark.parametrize(
    ("text", "line", "column", "help_"),
    [
        ("", 1, 1, "empty"),
        ("{A} &&", 1, 7, "ends too early. Expected an element"),
        ("{A} ;\n", 2, 1, "ends too early"),
        ("({A}", 1, 1, "parenthesis is not closed"),
        ("{A", 1, 1, "brace is not closed"),
        ("{v[1..2", 1, 3, "bracket is not closed"),
        ("{A})", 1, 4, "no matching opening bracket"),
        ("{A} {B}", 1, 5, "Expected an operator"),
        ("{A} & {B}", 1, 5, "joined by &&"),
        ("{A} | $x", 1, 5, "joined by ||"),
        ("{A} -> {B}", 1, 5, "joined by ;"),
        ("{A} and {B}", 1, 5, "&&, ||, ; and butnot"),
        ("{A} AND {B}", 1, 5, "&&, ||, ; and butnot"),
        ("{A} butnot {B} butnot {C}", 1, 16, "parentheses"),
        ("{A} && $x", 1, 8, "Expected an element"),
        ("{A | $x = 1}", 1, 9, "Equality is written =="),
        ("{A | x > 1}", 1, 6, "a component begins with $"),
        ("{v[1]: A}", 1, 5, "[2..4] or [1..*]"),
        ("{v[1..]: A}", 1, 7, "whole number"),
        ("{v[a..2]: A}", 1, 4, "whole number"),
        ("{v[3..2]: A}", 1, 2, "write [2..3]"),
        ("{v[0..0]: A}; {B}", 1, 2, "no events"),
        ("{v[9999999999999999..*]: A}", 1, 4, "too large"),
        ("{v[0..3]: A}", 1, 2, "before any, again and again. Write v[1..3]"),
        ("{v[0..*]: A}; {w[0..2]: B}", 1, 2, "Write v[1..*]"),
        ("{A} || {v[0..3]: A}", 1, 9, "This side of ||"),
        ("{v[0..3]: A} butnot {B}", 1, 2, "This side of butnot"),
        ("{A} butnot {v[0..3]: A}", 1, 13, "This side of butnot"),
        ("({v[0..3]: A} where count(v) > 1); {B}", 1, 3, "A condition needs an event"),
        ("({v[0..3]: A} do notify(v)); {B}", 1, 3, "An action needs an event"),
        ("{v[101..*]: A}", 1, 2, "needs 101 events"),
        ("{v[2..2]: A}; {w[2..2]: B} last 3", 1, 13, "needs 4 events"),
        ("{A} where", 1, 10, "Expected a component of a variable"),
        ("{a: A} where $x > 1", 1, 14, "one of a variable"),
        ("{a: A} where a.x = 1", 1, 18, "Equality is written =="),
        ("{a: A} where foo(a.x) > 1", 1, 17, "the functions are count"),
        ("{a: A} where a", 1, 14, "a component of a"),
        ("{a: A} where a > 1", 1, 14, "a component of a"),
        ("{a: A} where exist a and a > 1", 1, 26, "a component of a"),
        ("{a: A} where sum(a) > 1", 1, 14, "a component of a"),
        ("{a: A} where exist sum(a.x)", 1, 20, "`exist` tests"),
        ("{a: A} where counter(n) > 1", 1, 14, "cannot depend on a counter"),
        ("{a: A} where b.x > 1", 1, 14, "no variable b before"),
        ("{a: A}; {b: B} where a.x == b.x", 1, 22, "put parentheses"),
        ("({a: A} butnot {b: B}) where b.x > 1", 1, 30, "right side of butnot"),
        ("{a: A}; {a: B}", 1, 10, "bound twice"),
        ("{a: A} do assign a = T{}", 1, 11, "bound twice"),
        ("{a: A} do foo", 1, 11, "Expected an action"),
        ("{a: A} do notify(b)", 1, 11, "no variable b before"),
        ("{a: A} do announce(a)", 1, 11, "announce a new one"),
        ("{a: A} do announce(T, {x = 1, x = 2})", 1, 31, "there twice"),
        ("{a: A} do announce(T, {x = a})", 1, 28, "a component of a"),
        ("{a: A} do announce(T, {x = counter(n)})", 1, 28, "increments a counter n"),
        ("{a: A} do assign s = T", 1, 22, "new event"),
        (f"{{a: A}} do announce({'T' * 1_025}, {{}})", 1, 20, "more than 1024 characters"),
        ("{A} within 5", 1, 12, "units are ms, s, m, h and d"),
        ("{A} within 0s", 1, 12, "more than 0"),
        ("{A} last 0", 1, 10, "at least one event"),
        ("{v[1..2] w: A}", 1, 10, "Expected : and a type"),
        ("{v[1..2]", 1, 9, "Expected : and a type"),
        ("{a: A} where sum(a.x > 1", 1, 22, "closing parenthesis"),
        ("{a: A} do notify(a b)", 1, 20, "a comma or the closing bracket"),
        ("{a: A} do notify to 's'", 1, 18, "an opening parenthesis"),
        ("{a: A} do announce(B, {x = a.x per $u", 1, 32, "a comma or the closing bracket"),
        ("{A}; {b last", 1, 9, "After a type"),
        ("{A}; {B | $x > 1 last 2}", 1, 18, "Expected `and`, `or`"),
        ("{A} last", 1, 9, "whole number"),
        ("{A} per user", 1, 9, "per $user"),
        ("{A} within 1s within 2s", 1, 22, "only one `within`"),
        ("{A} once repeat", 1, 10, "only one `once` or `repeat`"),
    ],
)
def test_errors_have_a_position_and_a_hint(text: str, line: int, column: int, help_: str) -> None:
    with pytest.raises(FilterSyntax) as caught:
        parse_pattern(text)
    error = caught.value
    assert help_ in error.message
    assert (error.details["line"], error.details["column"]) == (line, column), error.message
    assert error.code == "filter_syntax"


LONG_SUM = "1" + " + 1" * 3_000  # nested to the left: deeper than Python may call


@pytest.mark.parametrize(
    ("text", "error", "bound"),
    [
        ("{A}" + " " * limits.PATTERN_CHARS_MAX, PatternTooLarge, "chars_max"),
        ("; ".join(["{A}"] * (limits.PATTERN_ELEMENTS_MAX + 1)), PatternTooLarge, "elements_max"),
        ("{A}" + " where 1 < 2" * limits.PATTERN_DEPTH_MAX, PatternTooLarge, "depth_max"),
        ("(" * 3_000 + "{A}" + ")" * 3_000, PatternTooLarge, "depth_max"),
        (
            "{A} do " + ", ".join(["increment n"] * (limits.PATTERN_ACTIONS_MAX + 1)),
            PatternTooLarge,
            "actions_max",
        ),
        (f"{{A}} within {FAR + 1}d", PatternTooLarge, "within_s_max"),
        (f"{{A}} last {limits.PATTERN_LAST_MAX + 1}", PatternTooLarge, "last_max"),
        (
            "{A} do announce(T, {" + ", ".join(f"a{n} = {n}" for n in range(65)) + "})",
            PatternTooLarge,
            "attributes_max",
        ),
        ("{A | " + " and ".join(["$x > 1"] * 600) + "}", FilterTooLarge, "parts_max"),
        ("{a: A} where " + " and ".join(["a.x > 1"] * 600), FilterTooLarge, "parts_max"),
        (" && ".join(["{A}"] * 500), PatternTooLarge, "depth_max"),
        ("{a: A}" + " do notify(a)" * 1_000, PatternTooLarge, "depth_max"),
        (f"{{A | $x > {LONG_SUM}}}", FilterTooLarge, "depth_max"),
        (f"{{a: A}} where a.x > {LONG_SUM}", FilterTooLarge, "depth_max"),
        ("{a: A} where " + "not " * 3_000 + "a.x", FilterTooLarge, "depth_max"),
        (f"{{a: A}} do increment n by {LONG_SUM}", FilterTooLarge, "depth_max"),
        (f"{{a: A}} do announce(T, {{y = {LONG_SUM}}})", FilterTooLarge, "depth_max"),
    ],
)
def test_sizes_are_limited(text: str, error: type[EventHubError], bound: str) -> None:
    with pytest.raises(error) as caught:
        parse_pattern(text)
    assert bound in caught.value.details


def test_the_largest_pattern_is_one() -> None:
    text = "; ".join(f"{{v{n}: A | $x > {n}}}" for n in range(limits.PATTERN_ELEMENTS_MAX))
    pattern = parse_pattern(f"{text} within {FAR}d last {limits.PATTERN_LAST_MAX}")
    assert parse_pattern(print_pattern(pattern)) == pattern
