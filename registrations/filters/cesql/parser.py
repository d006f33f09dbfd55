"""The parser of CESQL, a text to terms. Plain module.

Operators of equal precedence are evaluated from left to right, AND, OR and XOR included, as the
specification says (3.6); the grammar in its repository differs there.
"""

import re
from dataclasses import replace
from typing import NamedTuple

from eventhub.base import limits
from registrations.filters.ast import TextPosition
from registrations.filters.cesql.terms import INT_MAX, INT_MIN, CesqlTerm, CesqlValue
from registrations.filters.errors import FilterTooLarge
from registrations.filters.sexpr import end_of, syntax_error

_TOKENS = re.compile(
    r"""\s*(?:
        (?P<text>"(?:""|\\.|[^"\\])*" | '(?:''|\\.|[^'\\])*')
      | (?P<number>[0-9]+(?![A-Za-z0-9_]))
      | (?P<word>[A-Za-z0-9_]+)
      | (?P<sign><>|<=|>=|!=|[-+*/%=<>(),])
      | (?P<other>\S))""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = frozenset(("AND", "OR", "XOR", "NOT", "LIKE", "EXISTS", "IN", "TRUE", "FALSE"))
_POWERS = {
    **dict.fromkeys(("AND", "OR", "XOR"), 1),
    **dict.fromkeys(("=", "!=", "<>", "<", "<=", ">", ">="), 2),
    **dict.fromkeys(("+", "-"), 3),
    **dict.fromkeys(("*", "/", "%"), 4),
    **dict.fromkeys(("IN", "LIKE", "NOT"), 5),
}
_UNARY = 6
_NAME = re.compile(r"[A-Za-z0-9]+")
_FUNCTION = re.compile(r"[A-Za-z][A-Za-z_]*")
_HELP = {
    "'": "The text has no closing quote.",
    '"': "The text has no closing quote.",
    ".": "A CESQL name is letters and digits; the other languages reach into objects, as in "
    "(= address.city 'Basel).",
    "&": "Write AND.",
    "|": "Write OR.",
    "!": "Write NOT.",
}


class _Token(NamedTuple):
    """A token. `kind`: `text`, `number`, `word`, `sign` or `end`; `text` of a keyword is in upper
    case.
    """

    kind: str
    text: str
    start: int
    end: int
    position: TextPosition

    def is_(self, *texts: str) -> bool:
        return self.kind in ("sign", "keyword") and self.text in texts


def parse_terms(text: str, depth_max: int = limits.FILTER_DEPTH_MAX) -> CesqlTerm:
    """Parse an expression. Raises FilterSyntax with its position, FilterTooLarge."""
    if len(text) > limits.FILTER_CHARS_MAX:
        raise FilterTooLarge(position=end_of(text), chars_max=limits.FILTER_CHARS_MAX)
    return _Parser(text, depth_max).parsed()


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    line, begin, at = 1, 0, 0
    while (token := _TOKENS.match(text, at)) is not None:
        kind = token.lastgroup or "other"
        start, end = token.span(kind)
        line += text.count("\n", at, start)
        begin = text.rfind("\n", 0, start) + 1
        position = TextPosition(line, start - begin + 1)
        written = token[kind]
        if kind == "other":
            raise _unreadable(written, found[-1:], position)
        if kind == "word" and written.upper() in _KEYWORDS:
            kind, written = "keyword", written.upper()
        found.append(_Token(kind, written, start, end, position))
        if len(found) > 3 * limits.FILTER_PARTS_MAX:
            raise FilterTooLarge(position=position, parts_max=limits.FILTER_PARTS_MAX)
        line += text.count("\n", start, end)
        at = end
    last = TextPosition(text.count("\n") + 1, len(text) - text.rfind("\n"))
    found.append(_Token("end", "", len(text), len(text), last))
    return found


def _unreadable(char: str, before: list[_Token], position: TextPosition) -> Exception:
    if char == "." and before and before[0].kind == "number":
        return syntax_error("CESQL has integers only.", position)
    return syntax_error(_HELP.get(char, f"{char} means nothing in CESQL."), position)


class _Parser:
    """A parser by operator precedence."""

    def __init__(self, text: str, depth_max: int) -> None:
        self._tokens = _tokens(text)
        self._depth_max = depth_max
        self._at = 0
        self._opened = 0

    def parsed(self) -> CesqlTerm:
        found = self._expression(0)
        if self._next.kind != "end":
            raise self._unexpected()
        return found

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _expect(self, sign: str) -> _Token:
        if not self._next.is_(sign):
            raise self._unexpected(sign)
        return self._take()

    def _unexpected(self, expected: str = "") -> Exception:
        token = self._next
        if token.kind == "end":
            what = expected or "a value"
            return syntax_error(f"The expression ends too early; expected {what}.", token.position)
        hint = f"; expected {expected}" if expected else ""
        return syntax_error(f"{token.text[:100]} does not fit here{hint}.", token.position)

    def _expression(self, power: int) -> CesqlTerm:
        left = self._operand()
        while True:
            token = self._next
            strength = _POWERS.get(token.text, 0) if token.kind in ("sign", "keyword") else 0
            if strength <= power:
                return left
            left = self._set_test(left) if strength == 5 else self._binary(left, strength)

    def _binary(self, left: CesqlTerm, strength: int) -> CesqlTerm:
        token = self._take()
        right = self._expression(strength)
        op = "!=" if token.text == "<>" else token.text
        if op in ("AND", "OR") and left.op == op and left.start == left.args[0].start:
            return self._term(op, (*left.args, right), token, left.start, right.end)
        return self._term(op, (left, right), token, left.start, right.end)

    def _set_test(self, left: CesqlTerm) -> CesqlTerm:
        """Parse `[NOT] LIKE pattern` or `[NOT] IN (…)` after its left side."""
        negated = self._take() if self._next.is_("NOT") else None
        token = self._take()
        if token.is_("LIKE"):
            pattern = self._take()
            if pattern.kind != "text":
                raise syntax_error("LIKE takes a pattern in quotes.", pattern.position)
            args: tuple[CesqlTerm, ...] = left, self._literal(_unquoted(pattern.text), pattern)
            end = pattern.end
        elif token.is_("IN"):
            self._expect("(")
            items, end = self._items()
            if not items:
                raise syntax_error("IN takes at least one value.", token.position)
            args = left, *items
        else:
            raise syntax_error("After NOT, expected LIKE or IN.", token.position)
        found = self._term(token.text, args, token, left.start, end)
        if negated is None:
            return found
        return self._term("NOT", (replace(found, value=True),), negated, left.start, end)

    def _operand(self) -> CesqlTerm:
        token = self._take()
        if token.kind == "text":
            return self._literal(_unquoted(token.text), token)
        if token.kind == "number":
            return self._number(token, token.text, token.start)
        if token.kind == "word":
            return self._call(token) if self._next.is_("(") else self._attribute(token)
        if token.is_("TRUE", "FALSE"):
            return self._literal(token.text == "TRUE", token)
        if token.is_("("):
            return self._in_parentheses(token)
        if token.is_("-", "+") and self._next.kind == "number" and self._next.start == token.end:
            return self._number(self._next, token.text + self._take().text, token.start)
        if token.is_("NOT", "-"):
            self._open(token)
            item = self._expression(_UNARY)
            self._opened -= 1
            op = "NOT" if token.text == "NOT" else "negative"
            return self._term(op, (item,), token, token.start, item.end)
        if token.is_("EXISTS"):
            name = self._take()
            if name.kind != "word":
                raise syntax_error("EXISTS takes the name of an attribute.", name.position)
            item = self._attribute(name)
            return self._term("EXISTS", (item,), token, token.start, name.end)
        self._at -= token.kind != "end"
        raise self._unexpected("a value")

    def _in_parentheses(self, opening: _Token) -> CesqlTerm:
        self._open(opening)
        inner = self._expression(0)
        self._opened -= 1
        end = self._expect(")").end
        return CesqlTerm(
            inner.op, inner.args, inner.value, opening.start, end, inner.position, inner.depth
        )

    def _call(self, name: _Token) -> CesqlTerm:
        if _FUNCTION.fullmatch(name.text) is None:
            raise syntax_error("The name of a function is letters and _.", name.position)
        self._take()
        args, end = self._items()
        return self._term(name.text.upper(), args, name, name.start, end)

    def _items(self) -> tuple[tuple[CesqlTerm, ...], int]:
        """Parse items after a parenthesis, separated by commas, to the closing one."""
        if self._next.is_(")"):
            return (), self._take().end
        self._open(self._next)
        items = [self._expression(0)]
        while self._next.is_(","):
            self._take()
            items.append(self._expression(0))
        self._opened -= 1
        return tuple(items), self._expect(")").end

    def _open(self, token: _Token) -> None:
        """Count a level of nesting, for each of which the parser calls itself."""
        self._opened += 1
        if self._opened > self._depth_max:
            raise FilterTooLarge(position=token.position, depth_max=self._depth_max)

    def _attribute(self, name: _Token) -> CesqlTerm:
        if _NAME.fullmatch(name.text) is None:
            raise syntax_error(
                f"A CESQL name is letters and digits. Test {name.text[:100]} in another language, "
                "such as cel.",
                name.position,
            )
        return CesqlTerm("attribute", (), name.text, name.start, name.end, name.position, 1)

    def _number(self, token: _Token, text: str, start: int) -> CesqlTerm:
        value = int(text) if len(text) < 20 else INT_MAX + 1
        if not INT_MIN <= value <= INT_MAX:
            raise syntax_error("A CESQL integer has 32 bits.", token.position)
        return CesqlTerm("literal", (), value, start, token.end, token.position, 1)

    def _literal(self, value: CesqlValue, token: _Token) -> CesqlTerm:
        return CesqlTerm("literal", (), value, token.start, token.end, token.position, 1)

    def _term(
        self, op: str, args: tuple[CesqlTerm, ...], token: _Token, start: int, end: int
    ) -> CesqlTerm:
        depth = 1 + max((arg.depth for arg in args), default=0)
        if depth > self._depth_max:
            raise FilterTooLarge(position=token.position, depth_max=self._depth_max)
        return CesqlTerm(op, args, False, start, end, token.position, depth)


def _unquoted(text: str) -> str:
    r"""Return the text in quotes. `\` escapes the same quote; it stays before any other."""
    quote, inner = text[0], text[1:-1]
    return re.sub(rf"\\{quote}|{quote}{quote}|\\.", lambda found: _one(found[0], quote), inner,
                  flags=re.DOTALL)  # fmt: skip


def _one(found: str, quote: str) -> str:
    return quote if found in (f"\\{quote}", quote * 2) else found
