"""The terms of expressions, and what the parsers of CESQL and CEL share: tokens, precedence and
bounds. Plain module.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from eventhub.base import limits
from registrations.filters.ast import TextPosition
from registrations.filters.errors import FilterTooLarge
from registrations.filters.sexpr import end_of, syntax_error

PROGRAM_DEPTH_MAX = limits.FILTER_DEPTH_MAX + 2  # a part of a filter may be within `(…) OR TRUE`


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A part of an expression. `op`: an operator, a function, or a kind of term of the language;
    `value`: what it has besides its `args`. `start` and `end`: its place in the text, with
    parentheses.
    """

    op: str
    args: tuple["Term", ...]
    value: Any
    start: int
    end: int
    position: TextPosition
    depth: int

    def size(self) -> int:
        return 1 + sum(arg.size() for arg in self.args)


class Token(NamedTuple):
    """A token. `kind`: the name of a group of the pattern, `keyword`, or `end`."""

    kind: str
    text: str
    start: int
    end: int
    position: TextPosition

    def is_(self, *texts: str) -> bool:
        return self.kind in ("sign", "keyword") and self.text in texts


def tokens_of(
    text: str, pattern: re.Pattern[str], keyword: Callable[[str], str | None]
) -> list[Token]:
    """Split a text. `pattern` has a group for each kind of token; `keyword` returns how a word that
    is one is written. A token of the kind `other` is the last. Raises FilterTooLarge.
    """
    if len(text) > limits.FILTER_CHARS_MAX:
        raise FilterTooLarge(position=end_of(text), chars_max=limits.FILTER_CHARS_MAX)
    found: list[Token] = []
    line, at = 1, 0
    while (token := pattern.match(text, at)) is not None:
        kind = token.lastgroup or "other"
        start, end = token.span(kind)
        line += text.count("\n", at, start)
        position = TextPosition(line, start - text.rfind("\n", 0, start))
        word = keyword(token[kind]) if kind == "word" else None
        found.append(Token("keyword" if word else kind, word or token[kind], start, end, position))
        if kind == "other":
            return found
        if len(found) > 3 * limits.FILTER_PARTS_MAX:
            raise FilterTooLarge(position=position, parts_max=limits.FILTER_PARTS_MAX)
        line += text.count("\n", start, end)
        at = end
    last = TextPosition(text.count("\n") + 1, len(text) - text.rfind("\n"))
    found.append(Token("end", "", len(text), len(text), last))
    return found


class TermParser:
    """What the parsers of both languages share. `depth_max`: of nested terms, for each of which the
    parser and its readers call themselves.
    """

    def __init__(self, tokens: list[Token], depth_max: int) -> None:
        self._tokens = tokens
        self._depth_max = depth_max
        self._at = 0
        self._opened = 0

    def parsed(self) -> Term:
        """Parse the whole text. Raises FilterSyntax with its position, FilterTooLarge."""
        found = self._expression(0)
        if self._next.kind != "end":
            raise self._unexpected()
        return found

    def _expression(self, power: int) -> Term:
        """Parse the operators that bind more strongly than `power`."""
        raise NotImplementedError

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _expect(self, sign: str) -> Token:
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

    def _nested(self, token: Token, power: int) -> Term:
        """Parse an inner expression, one level deeper."""
        self._opened += 1
        if self._opened > self._depth_max:
            raise FilterTooLarge(position=token.position, depth_max=self._depth_max)
        found = self._expression(power)
        self._opened -= 1
        return found

    def _in_parentheses(self, opening: Token) -> Term:
        inner = self._nested(opening, 0)
        end = self._expect(")").end
        return Term(
            inner.op, inner.args, inner.value, opening.start, end, inner.position, inner.depth
        )

    def _items(self, closing: str = ")") -> tuple[tuple[Term, ...], int]:
        """Parse items after a bracket, separated by commas, to the closing one."""
        if self._next.is_(closing):
            return (), self._take().end
        items = [self._nested(self._next, 0)]
        while self._next.is_(","):
            self._take()
            if closing == "]" and self._next.is_(closing):
                break  # a list may end in a comma
            items.append(self._nested(self._next, 0))
        return tuple(items), self._expect(closing).end

    def _joined(self, left: Term, op: str, right: Term, token: Token) -> Term:
        """Return a term of two, or with one more item if the left one is of the same kind."""
        if op == left.op and left.start == left.args[0].start:
            return self._term(op, (*left.args, right), token, (left.start, right.end))
        return self._term(op, (left, right), token, (left.start, right.end))

    def _term(self, op: str, args: tuple[Term, ...], token: Token, place: tuple[int, int]) -> Term:
        depth = 1 + max((arg.depth for arg in args), default=0)
        if depth > self._depth_max:
            raise FilterTooLarge(position=token.position, depth_max=self._depth_max)
        return Term(op, args, None, *place, token.position, depth)

    def _leaf(self, op: str, value: Any, token: Token) -> Term:
        return Term(op, (), value, token.start, token.end, token.position, 1)
