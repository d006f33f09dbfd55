"""The forms and functions of programs: values, and faults with their place."""

import math
from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.agents.compiler import compile_program
from registrations.agents.engine import AgentEngine
from registrations.agents.functions import FUNCTIONS
from registrations.agents.run import ProgramFailed
from tests.unit.registrations.agents.programs import (
    announced,
    engine_of,
    fault_of,
    fed,
    position,
    run_of,
    value_of,
)

ATTRIBUTES: dict[str, Any] = {
    "type": "error",
    "size": "10",
    "user": {"name": "Ann", "tags": ["a", "b"]},
    "big": 2**64 - 1,
    "none": None,
    "a.b": 7,
}
VALUES: list[tuple[str, Any]] = [
    ("(+ 1)", 1), ("(- 5)", -5), ("(- 5 2 1)", 2), ("(* 2 3 4)", 24), ("(/ 2)", 0.5),
    ("(/ 12 2 3)", 2), ("(mod 7 3)", 1), ("(mod -1 3)", 2), ("(expt 2 10)", 1024),
    ("(expt 2 -1)", 0.5), ("(expt -1 1000001)", -1), ("(expt 0 1000000)", 0),
    ("(min 3 1 2)", 1), ("(max 3 1.5)", 3), ("(abs -2.5)", 2.5), ("(floor -2.5)", -3),
    ("(round 2.5)", 3), ("(round 9007199254740993)", 9007199254740993),
    ("(number \"12\")", 12), ("(number \" 12\")", None), ("(number null)", None),
    ("(number \"99999999999999999999\")", None), ("(number 5)", 5),
    ("(= 1 1.0 1)", True), ("(= 1 true)", False), ("(= null null)", True), ("(= 'a \"a\")", True),
    ("(= (list 1 (list 2)) (list 1 (list 2)))", True), ("(= (list 1) (list 2))", False),
    ("(= (object 'a 1 'b 2) (object 'b 2 'a 1))", True), ("(= (list) (object))", False),
    ("(!= 1 2 3)", True), ("(!= 1 2 1)", False), ("(= (event) (event))", True),
    ("(< 1 2 3)", True), ("(< 1 3 2)", False), ("(<= 1 1)", True), ("(> 'b 'a)", True),
    ("(>= 1 2)", False), ("(< \"9\" \"10\")", True), ("(< 'a 1)", False), ("(< null 1)", False),
    ("(not null)", True), ("(not 0)", False),
    ("(and 1 2)", 2), ("(and null (sin))", None), ("(or null 2)", 2), ("(or false null)", None),
    ("(if \"\" 1 2)", 1), ("(if false 1)", None), ("(when true 1 2)", 2), ("(when false 1)", None),
    ("(when true)", None), ("(do)", None), ("(do 1 2)", 2), ("(cond)", None),
    ("(cond (false 1) (null 2))", None), ("(cond (false 1) (else 2 3))", 3),
    ("(let ((x 1)) (set! x (+ x 1)) x)", 2), ("(let ((x 1)) (let ((x 2)) x) x)", 1),
    ("(let ((n 3) (s 0)) (while (> n 0) (set! s (+ s n)) (set! n (- n 1))) s)", 6),
    ("(while false)", None), ("(for (x (list 1)) x)", None), ("(map (x (list)) x)", []),
    ("(map (x (range 2)) (map (y (range 2)) (list x y)))",
     [[[0, 0], [0, 1]], [[1, 0], [1, 1]]]),
    ("(filter (x (list 1 null 2)) x)", [1, 2]), ("(fold (a 0) (x (list)) x)", 0),
    ("(fold (a (list)) (x (range 3)) (append a x))", [0, 1, 2]),
    ("(type null)", "null"), ("(type true)", "boolean"), ("(type 1)", "number"),
    ("(type 'a)", "text"), ("(type (list))", "list"), ("(type (object))", "object"),
    ("(type (event))", "event"), ("(length 'abc)", 3), ("(length (list 1 2))", 2),
    ("(length (object 'a 1))", 1), ("(text 'a)", "a"),
    ("(text (list 1 null \"é\"))", '[1, null, "é"]'),
    ("(text (object 'a 1.5))", '{"a": 1.5}'), ("(concat 'a 'b 'c)", "abc"),
    ("(join (list 'a 'b) \", \")", "a, b"), ("(split \"a b \" \" \")", ["a", "b", ""]),
    ("(part 'hello 3)", "lo"), ("(part 'hello -1 99)", "hello"), ("(part 'hello 3 1)", ""),
    ("(lower 'ABC)", "abc"), ("(upper 'abc)", "ABC"), ("(contains 'hello 'ell)", True),
    ("(contains (list 1 2) 2)", True), ("(contains (object 'a 1) 'b)", False),
    ("(prefix 'hello 'he)", True), ("(suffix 'hello 'he)", False), ("(range 2 5)", [2, 3, 4]),
    ("(range 5 2)", []), ("(first (list 1 2))", 1), ("(first (list))", None),
    ("(last (list 1 2))", 2), ("(last (list))", None), ("(rest (list 1 2))", [2]),
    ("(rest (list))", []), ("(nth (list 1 2) 1)", 2), ("(nth (list 1 2) -1)", None),
    ("(join-lists (list 1) (list) (list 2))", [1, 2]), ("(reverse (list 1 2))", [2, 1]),
    ("(put (object 'a 1) 'a 2 'b 3)", {"a": 2, "b": 3}), ("(names (object 'b 1 'a 2))", ["a", "b"]),
    ("(field (event) 'type)", "error"), ("(field (event) \"user.name\")", "Ann"),
    ("(field (event) \"user\")", {"name": "Ann", "tags": ["a", "b"]}),
    ("(field (event) 'big)", 2**64 - 1), ("(field (event) 'none 5)", 5),
    ("(field (event) 'missing)", None), ("(field (event) \"a.b\")", 7),
    ("(field (event) \"@domain\")", "d"), ("(field (event) \"@sequence\")", 1),
    ("(field (event) \"env.x\")", None), ("(field (object 'a 1) 'b 2)", 2),
    ("(field (object \"a.b\" 1) \"a.b\")", 1), ("(field (object 'a 1) \"a.b\")", None),
    ("(now)", 1.0), ("(recall 'x 3)", 3), ("(recall 'x)", None),
    ("(do (remember 'x 5) (recall 'x))", 5),
    ("(do (remember 'x 5) (forget 'x) (recall 'x 6))", 6), ("(length (recent 5))", 1),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_each_expression_has_its_value(expression: str, value: Any) -> None:
    if "(sin)" in expression:
        expression = expression.replace("(sin)", "(/ 1 0)")  # not evaluated
    found = value_of(expression, ATTRIBUTES)
    assert found == value
    assert type(found) is type(value)


def test_every_function_has_an_example() -> None:
    written = " ".join(expression for expression, _ in VALUES)
    rest = {name for name in FUNCTIONS if f"({name} " not in written and f"({name})" not in written}
    assert rest == {"notify", "announce"}


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("(+ 1 'a)", "wrong_type", 2),
        ("(+ 1 true)", "wrong_type", 2),
        ("(list (+ 1 null))", "wrong_type", 8),
        ("(/ 1 0)", "number_out_of_range", 2),
        ("(mod 1 0)", "number_out_of_range", 2),
        ("(* 18446744073709551615 2)", "number_out_of_range", 2),
        ("(- -9223372036854775808 1)", "number_out_of_range", 2),
        ("(* 1e300 1e300)", "number_out_of_range", 2),
        ("(+ 18446744073709551615 1e308 1e308)", "number_out_of_range", 2),
        ("(expt 10 100)", "number_out_of_range", 2),
        ("(expt 2 1000000000000)", "number_out_of_range", 2),
        ("(expt 18446744073709551615 128)", "number_out_of_range", 2),
        ("(expt 0 -1)", "number_out_of_range", 2),
        ("(expt -8 0.5)", "number_out_of_range", 2),
        ("(floor 1e300)", "number_out_of_range", 2),
        ("(concat 'a 5)", "wrong_type", 2),
        ("(length 5)", "wrong_type", 2),
        ("(first 'abc)", "wrong_type", 2),
        ("(nth (list 1) 0.5)", "wrong_type", 2),
        ('(split \'abc "")', "wrong_type", 2),
        ("(for (x 5) x)", "wrong_type", 6),
        ("(map (x null) x)", "wrong_type", 6),
        ("(object 'a)", "wrong_type", 2),
        ("(object 5 1)", "wrong_type", 2),
        ("(put (list) 'a 1)", "wrong_type", 2),
        ("(names (list))", "wrong_type", 2),
        ("(field 5 'a)", "wrong_type", 2),
        ('(field (event) "@colour")', "wrong_type", 2),
        ("(field (event) 5)", "wrong_type", 2),
        ("(recent 0)", "wrong_type", 2),
        ("(recent (+ 1000 1))", "wrong_type", 2),
        ("(recent 'a)", "wrong_type", 2),
        ("(recall 5)", "wrong_type", 2),
        ("(remember 'x (event))", "wrong_type", 2),
        ("(remember 'x (list (event)))", "wrong_type", 2),
        ("(notify 5)", "wrong_type", 2),
        ('(announce "")', "wrong_type", 2),
        ("(announce 'a (list))", "wrong_type", 2),
        ("(announce 'a (object 'e (event)))", "wrong_type", 2),
        ("(text (event))", "wrong_type", 2),
        ("(range 10001)", "value_too_large", 2),
        ("(define (f) x) (f) (define x 1)", "not_defined", 13),
    ],
)
def test_a_fault_has_its_code_and_place(text: str, code: str, column: int) -> None:
    fault = fault_of(f"\n{text}")
    assert (fault.code, fault.line, fault.column) == (code, 2, column)
    assert fault.message.endswith(".")


def test_a_failed_run_has_no_effect() -> None:
    text = """(announce 'before (object 'x (recall 'x 0))) (remember 'x 1) (notify)
        (when (field (event) 'bad) (+ 1 'a))"""
    (failed,), *ran = fed(engine_of(text), {"bad": True}, {}, {})
    assert isinstance(failed, ProgramFailed)
    assert [announced(outputs) for outputs in ran] == [[("before", {"x": x})] for x in (0, 1)]
    assert [len(outputs) for outputs in ran] == [2, 2]


def test_functions_call_themselves_and_each_other() -> None:
    text = """
        (define (even? n) (if (= n 0) true (odd? (- n 1))))
        (define (odd? n) (if (= n 0) false (even? (- n 1))))
        (define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
        (define limit 12)
        (announce 'is (object 'even (even? 100) 'fib (fib limit)))"""
    assert announced(run_of(text)) == [("is", {"even": True, "fib": 144})]


def test_a_function_sees_the_programs_variables_and_its_own() -> None:
    text = """
        (define total 0)
        (define (add n) (let ((twice (* 2 n))) (set! total (+ total twice)) twice))
        (announce 'is (object 'values (map (n (range 4)) (add n)) 'total total))"""
    assert announced(run_of(text)) == [("is", {"values": [0, 2, 4, 6], "total": 12})]


def test_a_type_may_have_a_domain() -> None:
    engine = AgentEngine()
    engine.add(0, compile_program('(announce "plant::a.b")'))
    (output,) = engine.feed(position(1), Event("d", "t", {}))
    assert output.event[:2] == ("plant", "a.b")  # type: ignore[union-attr]
    assert output.causes == (position(1),)  # type: ignore[union-attr]


def test_numbers_are_exact_or_floating_point() -> None:
    assert value_of("(* 9007199254740993 3)") == 9007199254740993 * 3
    assert value_of("(/ 1 3)") == 1 / 3
    assert math.isclose(value_of("(expt 2 0.5)"), 2**0.5)
