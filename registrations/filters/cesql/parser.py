"""The parser of CESQL, a text to terms. Plain module.

Operators of equal precedence are evaluated from left to right, AND, OR and XOR included, as the
specification says (3.6); the grammar in its repository differs there.
"""

import re
from dataclasses import replace

from eventhub.base import limits
from registrations.filters.cesql.like import like_parts
from registrations.filters.cesql.terms import INT_MAX, INT_MIN
from registrations.filters.sexpr import syntax_error
from registrations.filters.terms import Term, TermParser, Token, tokens_of

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


def parse_terms(text: str, depth_max: int = limits.FILTER_DEPTH_MAX) -> Term:
    """Parse an expression. Raises FilterSyntax with its position, FilterTooLarge."""
    tokens = tokens_of(text, _TOKENS, _keyword)
    if tokens[-1].kind == "other":
        raise _unreadable(tokens[-1], tokens[-2:-1])
    return _Parser(tokens, depth_max).parsed()


def _keyword(word: str) -> str | None:
    return word.upper() if word.upper() in _KEYWORDS else None


def _unreadable(token: Token, before: list[Token]) -> Exception:
    if token.text == "." and before and before[0].kind == "number":
        return syntax_error("CESQL has integers only.", token.position)
    message = _HELP.get(token.text, f"{token.text} means nothing in CESQL.")
    return syntax_error(message, token.position)


class _Parser(TermParser):
    """A parser by operator precedence."""

    def _expression(self, power: int) -> Term:
        left = self._operand()
        while True:
            token = self._next
            strength = _POWERS.get(token.text, 0) if token.kind in ("sign", "keyword") else 0
            if strength <= power:
                return left
            left = self._set_test(left) if strength == 5 else self._binary(left, strength)

    def _binary(self, left: Term, strength: int) -> Term:
        token = self._take()
        right = self._expression(strength)
        op = "!=" if token.text == "<>" else token.text
        if op in ("AND", "OR"):
            return self._joined(left, op, right, token)
        return self._term(op, (left, right), token, (left.start, right.end))

    def _set_test(self, left: Term) -> Term:
        """Parse `[NOT] LIKE pattern` or `[NOT] IN (…)` after its left side."""
        negated = self._take() if self._next.is_("NOT") else None
        token = self._take()
        if token.is_("LIKE"):
            pattern = self._take()
            if pattern.kind != "text":
                raise syntax_error("LIKE takes a pattern in quotes.", pattern.position)
            parts = like_parts(_unquoted(pattern.text))
            args: tuple[Term, ...] = left, self._leaf("pattern", parts, pattern)
            end = pattern.end
        elif token.is_("IN"):
            self._expect("(")
            items, end = self._items()
            if not items:
                raise syntax_error("IN takes at least one value.", token.position)
            args = left, *items
        else:
            raise syntax_error("After NOT, expected LIKE or IN.", token.position)
        found = self._term(token.text, args, token, (left.start, end))
        if negated is None:
            return found
        return self._term("NOT", (replace(found, value=True),), negated, (left.start, end))

    def _operand(self) -> Term:
        token = self._take()
        if token.kind == "text":
            return self._leaf("literal", _unquoted(token.text), token)
        if token.kind == "number":
            return self._number(token, token.text, token.start)
        if token.kind == "word":
            return self._call(token) if self._next.is_("(") else self._attribute(token)
        if token.is_("TRUE", "FALSE"):
            return self._leaf("literal", token.text == "TRUE", token)
        if token.is_("("):
            return self._in_parentheses(token)
        if token.is_("-", "+") and self._next.kind == "number" and self._next.start == token.end:
            return self._number(self._next, token.text + self._take().text, token.start)
        if token.is_("NOT", "-"):
            item = self._nested(token, _UNARY)
            op = "NOT" if token.text == "NOT" else "negative"
            return self._term(op, (item,), token, (token.start, item.end))
        if token.is_("EXISTS"):
            name = self._take()
            if name.kind != "word":
                raise syntax_error("EXISTS takes the name of an attribute.", name.position)
            item = self._attribute(name)
            return self._term("EXISTS", (item,), token, (token.start, name.end))
        self._at -= token.kind != "end"
        raise self._unexpected("a value")

    def _call(self, name: Token) -> Term:
        if _FUNCTION.fullmatch(name.text) is None:
            raise syntax_error("The name of a function is letters and _.", name.position)
        self._take()
        args, end = self._items()
        return self._term(name.text.upper(), args, name, (name.start, end))

    def _attribute(self, name: Token) -> Term:
        if _NAME.fullmatch(name.text) is None:
            raise syntax_error(
                f"A CESQL name is letters and digits. Test {name.text[:100]} in another language, "
                "such as cel.",
                name.position,
            )
        return self._leaf("attribute", name.text, name)

    def _number(self, token: Token, text: str, start: int) -> Term:
        value = int(text) if len(text) < 20 else INT_MAX + 1
        if not INT_MIN <= value <= INT_MAX:
            raise syntax_error("A CESQL integer has 32 bits.", token.position)
        return Term("literal", (), value, start, token.end, token.position, 1)


def _unquoted(text: str) -> str:
    r"""Return the text in quotes. `\` escapes the same quote; it stays before any other."""
    quote, inner = text[0], text[1:-1]
    return re.sub(rf"\\{quote}|{quote}{quote}|\\.", lambda found: _one(found[0], quote), inner,
                  flags=re.DOTALL)  # fmt: skip


def _one(found: str, quote: str) -> str:
    return quote if found in (f"\\{quote}", quote * 2) else found
