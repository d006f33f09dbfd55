"""The compiler of programs: what it refuses, and where."""

import pytest

from eventhub.base import limits
from registrations.agents.compiler import compile_program
from registrations.agents.errors import ProgramSyntax, ProgramTooLarge
from registrations.filters.ast import Compare, Const, Path, Truth
from tests.unit.registrations.agents.programs import value_of


def test_a_program_has_its_trigger_and_its_recent_events() -> None:
    found = compile_program("(on (= type 'error)) (length (recent 5 (> size 9))) (recent (+ 1 2))")
    assert found.trigger == Compare("=", Path("type"), Const("error"))
    assert [one.count_max for one in found.recent] == [5, limits.AGENT_RECENT_MAX]
    assert found.recent[1].filter == Truth(True)
    assert compile_program("").trigger == Truth(True)


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("x", 1, 1, r"Unknown variable `x`; a text is written 'x"),
        ("()", 1, 1, "parentheses are empty"),
        ("(sin 5)", 1, 2, "Unknown function `sin`"),
        ('("a" 5)', 1, 2, "name of a form"),
        ("((list) 5)", 1, 2, "name of a form"),
        ("(`list` 5)", 1, 2, "name of a form"),
        ("(not)", 1, 2, "takes 1 argument, not 0"),
        ("(part 'a)", 1, 2, "takes 2 to 3 arguments, not 1"),
        ("(concat)", 1, 2, "at least 1"),
        ("(define x)", 1, 1, "takes a name and a value"),
        ("(define x 1 2)", 1, 1, "one value"),
        ("(define 5 1)", 1, 9, "Expected a name"),
        ("(define (if) 1)", 1, 10, "has a meaning already"),
        ("(define (f 5) 1)", 1, 12, "Expected a name"),
        ("(define (list) 1)", 1, 10, "has a meaning already"),
        ("(define () 1)", 1, 9, "Expected a name, or"),
        ("(define a! 1)(define a! 1)", 1, 22, "defined already"),
        ("(define a 1)\n(define (a) 1)", 2, 9, "defined already"),
        ("(define (a x x) 1)", 1, 9, "same name"),
        ("(define (f x) x) (f)", 1, 19, "takes 1 argument, not 0"),
        ("(when true (define x 1))", 1, 13, "of the program itself"),
        ("(define x 1) (when true (define x 1))", 1, 26, "of the program itself"),
        ("(define (f) (define x 1))", 1, 14, "of the program itself"),
        ("(let (a 1) a)", 1, 7, r"Expected \(name value\)"),
        ("(let ((a 1)))", 1, 2, "takes"),
        ("(let ((a 1)) a) a", 1, 17, "Unknown variable"),
        ("(let ((a b) (b 1)) a)", 1, 10, "Unknown variable"),
        ("(for (x (list)) x) x", 1, 20, "Unknown variable"),
        ("(for x (list))", 1, 2, "takes"),
        ("(fold (a 0) (x (list)))", 1, 2, "takes"),
        ("(set! x 1)", 1, 7, "Unknown variable"),
        ("(set! 5 1)", 1, 7, "Expected a variable"),
        ("(cond true)", 1, 7, "Expected"),
        ("(if 1)", 1, 2, "takes 2 to 3"),
        ("(recent)", 1, 2, "takes 1 to 2"),
        ("(recent 5 (like a))", 1, 12, "expected one of"),
        ("(recent 5 (= type x) 1)", 1, 2, "takes 1 to 2"),
        ("(on (like a))", 1, 6, "expected one of"),
        ("(list 1) (on (= a 1))", 1, 10, "the first form"),
        ("(on (= a 1)) (on (= a 1))", 1, 14, "the first form"),
        ("(when true (on (= a 1)))", 1, 13, "the first form"),
        ("(list 1", 1, 1, "not closed"),
        ("(list '(1 2))", 1, 7, "A quote precedes"),
        ("(list 18446744073709551616)", 1, 7, "64 bits"),
    ],
)
def test_errors_have_the_position(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(ProgramSyntax, match=says) as caught:
        compile_program(text)
    assert caught.value.details == {"line": line, "column": column}
    assert (caught.value.status, caught.value.code) == (400, "program_syntax")


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("(list 1)" + " " * limits.PROGRAM_CHARS_MAX, "chars_max"),
        (f"(list{' 1' * limits.PROGRAM_PARTS_MAX})", "parts_max"),
        ("(not " * 65 + "1" + ")" * 65, "depth_max"),
        (f"(recent {limits.AGENT_RECENT_MAX + 1})", "recent_max"),
    ],
)
def test_a_program_beyond_a_limit_is_refused(text: str, bound: str) -> None:
    with pytest.raises(ProgramTooLarge) as caught:
        compile_program(text)
    assert {bound, "line", "column"} <= caught.value.details.keys()
    assert "filter" not in caught.value.message
    assert caught.value.status == 422


def test_the_deepest_program_compiles_and_runs() -> None:
    depth = limits.PROGRAM_DEPTH_MAX - 2
    assert value_of("(+ 1 " * depth + "0" + ")" * depth) == depth
    deep = "(if true " * (depth // 2) + "(do " * (depth // 2)
    assert value_of(f"{deep}5{')' * (depth // 2 * 2)}") == 5
