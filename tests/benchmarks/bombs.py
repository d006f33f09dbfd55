"""Filters intended to harm, always the same: filters that must be refused, and the most expensive
ones that are allowed. Plain.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

TOO_LARGE, SYNTAX = "filter_too_large", "filter_syntax"
MEGABYTE = 1_000_000


class Bomb(NamedTuple):
    """A filter, and the codes one of which it is refused with on every route."""

    name: str
    language: str
    filter: Any
    codes: tuple[str, ...]


def _predicate(name: str, text: str, *codes: str) -> Bomb:
    return Bomb(name, "predicate", text, codes or (TOO_LARGE,))


def _any(count: int, prefix: str = "a") -> str:
    return f"(or {' '.join(f'(= {prefix}{n} {n})' for n in range(count))})"


def _all(parts: Iterator[str]) -> str:
    return f"(and {' '.join(parts)})"


def _deep_json(depth: int) -> Any:
    found: Any = [1]
    for _ in range(depth):
        found = {"a": found}
    return found


def _nested_or(depth: int) -> Any:
    found: Any = {"a": [1]}
    for number in range(depth):
        found = {"$or": [found, {f"b{number}": [1]}], "c": [number]}
    return found


def refused() -> list[Bomb]:
    """Return the filters that must be refused."""
    size = (TOO_LARGE, "body_too_large", "field_too_long")
    deep = (TOO_LARGE, "too_deep", "malformed_json", SYNTAX)
    return [
        # nesting
        _predicate("nested_not", "(not " * 2_000 + "(exists a)" + ")" * 2_000),
        _predicate("nested_33", "(not " * 33 + "(exists a)" + ")" * 33),
        _predicate("open_only", "(" * 16_000),
        _predicate("nested_and_or", "(and (or " * 400 + "(exists a)" + "))" * 400),
        # alternatives: of ors in ands, of nots of ands, of choices by turns
        _predicate("dnf_2_10", _all(_any(2, f"p{n}x") for n in range(10))),
        _predicate("dnf_30_3", _all(_any(30, f"p{n}x") for n in range(3))),
        _predicate("dnf_65", _any(65)),
        _predicate("dnf_not", _all(f"(not (and (= a{n} 1) (= b{n} 2)))" for n in range(40))),
        _predicate("dnf_late", _all(
                   (*(f"(= a{n} 1)" for n in range(64)), _any(32, "b"), _any(32, "c")))),
        _predicate("dnf_at_bound", _all(_any(64) if n % 2 else _any(16) for n in range(7))
                   [:-1] + f" {_any(20, 'z')} {_any(20, 'y')})"),
        # size
        _predicate("megabyte", f'(= a "{"x" * MEGABYTE}")', *size),
        _predicate("megabyte_of_tests", "(or " + "(= a 1) " * (MEGABYTE // 8) + ")", *size),
        _predicate("17_kilobytes", f'(= a "{"x" * 17_000}")'),
        _predicate("in_2000", f"(in a {' '.join(map(str, range(2_000)))})"),
        _predicate("substrings", _all(f'(substring a "{n}x")' for n in range(1_200))),
        _predicate("wildcards", _all(f'(wildcard a "*{n}*")' for n in range(1_200))),
        _predicate("long_path", f"(exists {'p' * 2_000})"),
        # arithmetic
        _predicate("tower", "(> " + "(+ a " * 60 + "b" + ")" * 60 + " 1)"),
        _predicate("long_sum", f"(> (+ {' '.join(f'a{n}' for n in range(300))}) 1)"),
        _predicate("huge_integer", f"(= a {'9' * 10_000})", SYNTAX),
        # READY
        Bomb("ready_nested", "ready", "E: * | " + "(" * 3_000 + "$a" + ")" * 3_000, (TOO_LARGE,)),
        Bomb("ready_not", "ready", "E: * | " + "not " * 4_000 + "$a == 1", (TOO_LARGE, SYNTAX)),
        Bomb("ready_minus", "ready", "E: * | $a > " + "- " * 5_000 + "1", (TOO_LARGE, SYNTAX)),
        Bomb("ready_long", "ready", "E: * | " + " and ".join(f"$a{n} == {n}" for n in range(1_500)),
             (TOO_LARGE,)),
        Bomb("ready_ambiguous", "ready", "E: * | " + "$a + " * 2_000 + "1 == 1", (TOO_LARGE,)),
        Bomb("ready_dnf", "ready", "E: * | " + " and ".join(
             f"($a{n} == 1 or $b{n} == 2)" for n in range(40)), (TOO_LARGE,)),
        # JSON
        Bomb("json_deep", "eventbridge", {"detail": _deep_json(400)}, deep),
        Bomb("json_or", "eventbridge", {"detail": _nested_or(70)}, (*deep, "invalid_field")),
        Bomb("json_wide", "eventbridge",
             {"detail": {f"a{n}": [n, {"prefix": "x"}] for n in range(40)}}, (TOO_LARGE,)),
        Bomb("json_values", "eventbridge", {"detail": {"a": list(range(5_000))}}, (TOO_LARGE,)),
        Bomb("pairs_many", "pairs", {"attributes": {f"a{n}": n for n in range(10_000)}},
             ("field_too_long", TOO_LARGE)),
        Bomb("propositional_deep", "propositional", "(and " * 900 + "a" + ")" * 900, (TOO_LARGE,)),
    ]  # fmt: skip


EXPENSIVE_TESTS = 245  # as many as parts allow


def costliest(number: int) -> str:
    """Return the most expensive allowed filter: every event has the fields that it reads, all of
    its tests except the last one hold, and no other filter has one of them.
    """
    tests = [f'(not (wildcard node "*{number}*{at}*q"))' for at in range(EXPENSIVE_TESTS)]
    return _all(iter([*tests, '(wildcard node "~*~")']))
