"""The filters of a CESQL term that tests one attribute: where it is true, where it is false, and
where it has no error. Plain module.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from eventhub.base import limits
from registrations.filters.ast import (
    FLIPPED,
    Compare,
    Comparison,
    Const,
    Exists,
    In,
    Node,
    Not,
    Operand,
    Path,
    Scalar,
    Text,
)
from registrations.filters.cesql.attributes import REQUIRED, name_of, path_of_attribute
from registrations.filters.cesql.evaluation import cast_or_none, evaluate
from registrations.filters.cesql.like import LikePart, fits_parts
from registrations.filters.cesql.terms import CesqlValue, attributes_in
from registrations.filters.junctions import ALWAYS, NEVER, all_of, any_of, opposite
from registrations.filters.terms import Term
from registrations.filters.values import MISSING, number_of
from registrations.filters.work import TooMuchWork

Cases = tuple[Node, Node, Node]
TRUE, FALSE, DEFINED = range(3)
NOTHING = (NEVER, NEVER, NEVER)
_INVERSE: dict[Comparison, Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TRUTHS = {True: ("true", "True", "TRUE"), False: ("false", "False", "FALSE")}
_NULL = Const(None)
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,307}")  # a float may be as great
_LEAST = float.fromhex("-0x1.fffffffffffffp+1023")  # every number is at least this one


def cases_of(term: Term) -> Cases | None:
    """Return the cases of a test of one attribute and constants; None for all other terms."""
    if not any(attributes_in(term)):
        return _known(term)
    match term.op:
        case "attribute":
            return _equal(term, term, True)
        case "=" | "!=" | "<" | "<=" | ">" | ">=":
            return _compared(term)
        case "EXISTS":
            return _exists(term)
        case "IN":
            return _in(term)
        case "LIKE":
            return _like(term)
    return None


def path_of_term(term: Term) -> Path | None:
    """Return the path of an attribute; None for all else."""
    found = path_of_attribute(name_of(term.value)) if term.op == "attribute" else None
    return None if found is None else replace(found, position=term.position)


def present_path(node: Node) -> Operand | None:
    """Return the attribute that a node tests for having a value (`presence_of`)."""
    is_presence = isinstance(node, Compare) and node.op == "!=" and node.right == _NULL
    return node.left if is_presence else None  # type: ignore[union-attr]


def presence_of(path: Path) -> Node:
    """Return the test that an attribute has a value: null, objects and empty lists are none."""
    if path.space == "attributes":
        return Compare("!=", path, _NULL, path.position)
    return Exists(path, path.position)


def _known(term: Term) -> Cases:
    value = _constant(term)
    known = None if value is None else cast_or_none(value, "boolean")
    if known is None:
        return NOTHING
    return (ALWAYS, NEVER, ALWAYS) if known else (NEVER, ALWAYS, ALWAYS)


def _compared(term: Term) -> Cases | None:
    """Return the cases of a comparison of an attribute and a constant."""
    op: Comparison = term.op  # type: ignore[assignment]
    left, right = term.args
    for one, other, relation in ((left, right, op), (right, left, FLIPPED[op])):
        path = path_of_term(one)
        if path is None or any(attributes_in(other)):
            continue
        value = _constant(other)
        if value is None:
            return NOTHING
        if op not in ("=", "!="):
            return _ordered(term, path, relation, value)
        cases = _equal(term, one, value) if one is left else _one_of(term, one, [value])
        true, false, defined = cases or NOTHING
        return (true, false, defined) if op == "=" else (false, true, defined)
    return None


def _ordered(term: Term, path: Path, op: Comparison, value: CesqlValue) -> Cases:
    number = cast_or_none(value, "integer")
    if number is None:
        return NOTHING
    test = Compare(op, path, Const(number), term.position)
    return test, replace(test, op=_INVERSE[op]), _numeric(path, term)


def _equal(term: Term, of: Term, value: CesqlValue) -> Cases | None:
    """Return the cases of an attribute that equals a constant after a cast to its type."""
    path = path_of_term(of)
    if path is None:
        return None
    if isinstance(value, str):
        return _of_text(term, of, path, value)
    if isinstance(value, bool):
        one, other = (_in_values(path, (each, *_TRUTHS[each]), term) for each in (value, not value))
        return one, other, any_of((one, other))
    numeric = _numeric(path, term)
    unlike = [Compare("!=", path, Const(each), term.position) for each in (value, str(value))]
    return _in_values(path, (value, str(value)), term), all_of((numeric, *unlike)), numeric


def _of_text(term: Term, of: Term, path: Path, text: str) -> Cases:
    """Return the cases of an attribute that equals a text after a cast to a text."""
    name = name_of(of.value)
    test = _in_values(path, _forms(path, text), term)
    return _present(name, test, absent=text == _if_missing(name))


def _one_of(term: Term, of: Term, constants: list[CesqlValue]) -> Cases | None:
    """Return the cases of an attribute that one of the constants equals after a cast to the type of
    the attribute. A constant that cannot be cast is not equal.
    """
    path = path_of_term(of)
    if path is None:
        return None
    name, values = name_of(of.value), list[Scalar]()
    for constant in constants:
        values += _forms(path, str(cast_or_none(constant, "text")))
        casts = (cast_or_none(constant, "integer"), cast_or_none(constant, "boolean"))
        if not _is_text(path):
            values += [one for one in casts if one is not None]
    return _present(name, _in_values(path, values, term), absent=_if_missing(name) in values)


def _present(name: str, test: Compare | In | Text, *, absent: bool) -> Cases:
    """Return the cases of a test of any value. `absent`: it holds for the value of a required
    attribute whose field is missing.
    """
    path = test.left if isinstance(test, Compare) else test.path
    presence = presence_of(path)  # type: ignore[arg-type]
    if name in REQUIRED:
        true = any_of((test, Not(presence))) if absent else test
        return true, opposite(true), ALWAYS
    if not isinstance(test, Compare):
        return test, all_of((presence, opposite(test))), presence
    unequal = replace(test, op="!=")
    return test, all_of((unequal, presence)), presence


def _exists(term: Term) -> Cases | None:
    name = name_of(term.args[0].value)
    if name in REQUIRED or name == "specversion":
        return ALWAYS, NEVER, ALWAYS
    path = path_of_term(term.args[0])
    if path is None:
        return None
    return presence_of(path), Not(presence_of(path)), ALWAYS


def _in(term: Term) -> Cases | None:
    one, *others = term.args
    if any(True for other in others for _ in attributes_in(other)):
        return None
    constants = list(map(_constant, others))
    known = [constant for constant in constants if constant is not None]
    return _one_of(term, one, known) if len(known) == len(constants) else NOTHING


def _like(term: Term) -> Cases | None:
    """Return the cases of a pattern; None with `_` in it, which no test has."""
    path, parts = path_of_term(term.args[0]), term.args[1].value
    if path is None or not _is_plain(parts):
        return None
    if len(parts) == 1:
        return _of_text(term, term.args[0], path, parts[0])
    name = name_of(term.args[0].value)
    if not any(parts):
        true = ALWAYS if name in REQUIRED else presence_of(path)
        return true, NEVER, true
    return _present(name, text_test(path, parts, term), absent=fits_missing(name, parts))


def fits_missing(name: str, parts: tuple[LikePart, ...]) -> bool:
    """Return whether a pattern fits the value of a required attribute whose field is missing."""
    text = _if_missing(name)
    return text is not None and fits_parts(parts, text)


def text_test(path: Path, parts: tuple[LikePart, ...], term: Term) -> Text:
    """Return the test of a pattern; `_` stands for any characters in it."""
    split = [(part,) if isinstance(part, str) else part.texts for part in parts]
    texts = [text for each in split for text in each]
    match texts if _is_plain(parts) else ():
        case [text, ""]:
            return Text("prefix", path, text, term.position)
        case ["", text]:
            return Text("suffix", path, text, term.position)
        case ["", text, ""]:
            return Text("substring", path, text, term.position)
    escaped = (text.replace("\\", "\\\\").replace("*", "\\*") for text in texts)
    return Text("wildcard", path, "*".join(escaped), term.position)


def _is_plain(parts: tuple[LikePart, ...]) -> bool:
    """Return whether a pattern has no `_`."""
    return all(isinstance(part, str) for part in parts)


def _if_missing(name: str) -> str | None:
    """Return the value of an attribute whose field is missing; None if there is none."""
    value = REQUIRED.get(name)
    return value if isinstance(value, str) else None


def _in_values(path: Path, values: Iterable[Scalar], term: Term) -> Compare | In:
    constants = tuple(dict.fromkeys(map(Const, values)))
    if len(constants) == 1:
        return Compare("=", path, constants[0], term.position)
    return In(path, constants, term.position)


def _is_text(path: Path) -> bool:
    """Return whether the values at a path are always texts."""
    return path.space == "envelope" and path.name != "priority"


def _forms(path: Path, text: str) -> tuple[Scalar, ...]:
    """Return the values at a path that are this text after a cast."""
    if _is_text(path):
        return (text,)
    if text in ("true", "false"):
        return text, text == "true"
    number = _number(text)
    return (text,) if number is None else (text, number)


def _number(text: str) -> int | float | None:
    """Return the number that a cast writes as this text."""
    if _WHOLE.fullmatch(text):
        whole = int(text)
        if limits.INTEGER_MIN <= whole <= limits.INTEGER_MAX:
            return whole
        return float(whole) if int(float(whole)) == whole else None
    number = number_of(text)
    is_written_so = isinstance(number, float) and not number.is_integer() and repr(number) == text
    return number if is_written_so else None


def _numeric(path: Path, term: Term) -> Node:
    """Return a test that the attribute is a number or the text of one."""
    return Compare(">=", path, Const(_LEAST), term.position)


def _constant(term: Term) -> CesqlValue | None:
    """Return the value of a term without attributes; None if it has an error."""
    try:
        value, error = evaluate(term, lambda _: MISSING)
    except TooMuchWork:
        return None
    return value if error is None else None
