"""The types and functions of CESQL. Plain module.

A term's `op` is `literal` or `attribute` (both with `value`), `negative`, an operator, or the name
of a function in upper case. The pattern of LIKE (`pattern`, see like.py) and the name of EXISTS are
terms as well. `value` of LIKE and IN: whether their place includes a NOT before them.

Source: CloudEvents SQL Expression Language 1.0.0, cesql/spec.md of cloudevents/spec.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from registrations.filters.terms import Term

CesqlValue = str | int | bool
CesqlType = Literal["text", "integer", "boolean"]
ZERO: dict[CesqlType | None, CesqlValue] = {"text": "", "integer": 0, "boolean": False, None: False}
_BOOLEAN = frozenset(("NOT", "AND", "OR", "XOR", "=", "!=", "<", "<=", ">", ">=", "LIKE", "IN",
                      "EXISTS"))  # fmt: skip
_INTEGER = frozenset(("negative", "+", "-", "*", "/", "%"))
MISSING_FUNCTION = "missingFunction"


class CesqlError(Exception):
    """An error of an evaluation. `kind`: as in the conformance tests of CESQL. `value`: what the
    failed function returns in spite of it; `term`: that function.
    """

    def __init__(self, kind: str, message: str, value: CesqlValue | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.value = value
        self.term: Term | None = None


@dataclass(frozen=True, slots=True)
class CesqlFunction:
    """A function. `rest`: the type of any further arguments."""

    takes: tuple[CesqlType, ...]
    result: CesqlType
    call: Callable[..., CesqlValue]
    rest: CesqlType | None = None


def type_of_term(term: Term) -> CesqlType | None:
    """Return the type of a term's values; None if it depends on the event or the function does not
    exist.
    """
    if term.op in _BOOLEAN:
        return "boolean"
    if term.op in _INTEGER:
        return "integer"
    if term.op == "literal":
        return type_of(term.value)
    found = function_of(term.op, len(term.args))
    return None if found is None else found.result


def attributes_in(term: Term) -> Iterator[str]:
    """Yield the names of the attributes that a term may read."""
    if term.op == "attribute":
        yield term.value
    for arg in term.args:
        yield from attributes_in(arg)


def required_by(term: Term) -> Iterator[str]:
    """Yield the attributes without which a term has an error."""
    if term.op == "attribute":
        yield term.value
    elif term.op != "EXISTS":
        always = term.args[:1] if term.op in ("AND", "OR") else term.args
        for arg in always:
            yield from required_by(arg)


def type_of(value: CesqlValue) -> CesqlType:
    if isinstance(value, bool):
        return "boolean"
    return "integer" if isinstance(value, int) else "text"


def function_of(name: str, count: int) -> CesqlFunction | None:
    """Return the function of a name for a number of arguments."""
    for found in FUNCTIONS.get(name, ()):
        if len(found.takes) == count or (found.rest is not None and len(found.takes) < count):
            return found
    return None


# Unicode's white space; Python's `strip` removes control characters as well
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
_SPACES += "\u200a\u2028\u2029\u202f\u205f\u3000"
_FAILED = "functionEvaluation"
INT_MIN, INT_MAX = -(2**31), 2**31 - 1


def _left(text: str, count: int) -> str:
    if count < 0:
        raise CesqlError(_FAILED, f"LEFT takes no negative number, {count}", text)
    return text[:count]


def _right(text: str, count: int) -> str:
    if count < 0:
        raise CesqlError(_FAILED, f"RIGHT takes no negative number, {count}", text)
    return text[max(len(text) - count, 0) :]


def _substring(text: str, at: int, count: int | None = None) -> str:
    if not -len(text) <= at <= len(text) or (count is not None and count < 0):
        raise CesqlError(_FAILED, "SUBSTRING is outside of the text", "")
    if not at:
        return ""
    begin = at - 1 if at > 0 else len(text) + at
    return text[begin:] if count is None else text[begin : begin + count]


def _abs(number: int) -> int:
    if number == INT_MIN:
        raise CesqlError("math", f"ABS({number}) has more than 32 bits", INT_MAX)
    return abs(number)


FUNCTIONS: dict[str, tuple[CesqlFunction, ...]] = {
    "LENGTH": (CesqlFunction(("text",), "integer", len),),
    "CONCAT": (CesqlFunction((), "text", lambda *texts: "".join(texts), "text"),),
    "CONCAT_WS": (
        CesqlFunction(("text",), "text", lambda between, *texts: between.join(texts), "text"),
    ),
    "LOWER": (CesqlFunction(("text",), "text", str.lower),),
    "UPPER": (CesqlFunction(("text",), "text", str.upper),),
    "TRIM": (CesqlFunction(("text",), "text", lambda text: text.strip(_SPACES)),),
    "LEFT": (CesqlFunction(("text", "integer"), "text", _left),),
    "RIGHT": (CesqlFunction(("text", "integer"), "text", _right),),
    "SUBSTRING": (
        CesqlFunction(("text", "integer"), "text", _substring),
        CesqlFunction(("text", "integer", "integer"), "text", _substring),
    ),
    "ABS": (CesqlFunction(("integer",), "integer", _abs),),
    "INT": (CesqlFunction(("integer",), "integer", lambda number: number),),
    "BOOL": (CesqlFunction(("boolean",), "boolean", lambda truth: truth),),
    "STRING": (CesqlFunction(("text",), "text", lambda text: text),),
}
