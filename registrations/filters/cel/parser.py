"""The parser of CEL, the Common Expression Language: a text to terms. Plain module.

A term's `op` is `literal`, `name` or `variable` (all with `value`), `field` (`value`: its name),
`index`, `list`, `has`, a macro (with the name of its variable as `value`), `negative`, `?:`, an
operator, or a function, whose first argument is what it is called on.

Source: the language definition, doc/langdef.md of google/cel-spec.
"""

import re
from typing import Any

from eventhub.base import limits
from registrations.filters.cel.literals import number_of_token, text_of_token
from registrations.filters.sexpr import syntax_error
from registrations.filters.terms import Term, TermParser, Token, tokens_of

_TOKENS = re.compile(
    r"""(?>(?:\s|//[^\n]*)*)(?:
        (?P<text>[rR](?:"{3}(?:(?!"{3}).)*"{3} | '{3}(?:(?!'{3}).)*'{3} | "[^"\n]*" | '[^'\n]*')
                 | "{3}(?:\\.|(?!"{3}).)*"{3} | '{3}(?:\\.|(?!'{3}).)*'{3}
                 | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
      | (?P<number>(?:0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
                   (?![A-Za-z0-9_]))
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>&&|\|\||[!<>=]=|[-+*/%!<>?:.,()\[\]])
      | (?P<other>\S))""",
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
_RESERVED = frozenset(("as", "break", "const", "continue", "else", "for", "function", "if",
                       "import", "let", "loop", "package", "namespace", "return", "var", "void",
                       "while"))  # fmt: skip
_POWERS = {
    "?": 1,
    "||": 2,
    "&&": 3,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 4),
    **dict.fromkeys("+-", 5),
    **dict.fromkeys("*/%", 6),
}
_UNARY = 7
_WORDS = {"and": "&&", "or": "||"}  # which CEL does not have, between two values
MACROS = frozenset(("all", "exists", "exists_one", "map", "filter"))
# functions, and how many values each takes, the one that it is called on included
FUNCTIONS = {
    **dict.fromkeys(("size", "int", "double", "string", "bool", "dyn"), 1),
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim"), 1),
    **dict.fromkeys(("startsWith", "endsWith", "contains"), 2),
}
_CONVERSIONS = frozenset(("int", "double", "string", "bool", "dyn"))
_INSTEAD = {
    "matches": "Regular expressions are not supported; use startsWith, endsWith, contains, or "
    "(wildcard …) of the predicate language.",
    "timestamp": "Times are texts that compare in their order, as in event.time > "
    '"2026-01-01T00:00:00.000000Z".',
    "duration": "Times are texts; there are no durations.",
    "uint": "There are no unsigned integers; use int.",
    "bytes": "There are no bytes; use texts.",
    "type": "Types cannot be tested; compare the value.",
}
_HELP = {
    "{": "There are no maps and messages; compare the fields of a value one by one.",
    "=": "Equality is written ==.",
    "&": "Write &&.",
    "|": "Write ||.",
    "`": 'Write a name with other characters as attributes["disk usage"].',
    "@": "The fields of the event itself are event.type, event.domain and so on.",
    "$": "Names of attributes are written without a dollar sign.",
}


def parse_cel_terms(text: str, depth_max: int = limits.FILTER_DEPTH_MAX) -> Term:
    """Parse an expression. Raises FilterSyntax with its position, FilterTooLarge."""
    tokens = tokens_of(text, _TOKENS, lambda word: word if word == "in" else None)
    last = tokens[-1]
    if last.kind == "other":
        message = "The text has no closing quote." if last.text in "'\"" else None
        if last.text in "0123456789.":
            message = "A number is written as 5, 0.5, 1e6 or 0x1f; there are no unsigned ones."
        known = _HELP.get(last.text, f"{last.text} means nothing in CEL.")
        raise syntax_error(message or known, last.position)
    return _CelParser(tokens, depth_max).parsed()


class _CelParser(TermParser):
    """A parser by operator precedence. `_variables`: those of the macros around."""

    def __init__(self, tokens: list[Token], depth_max: int) -> None:
        super().__init__(tokens, depth_max)
        self._variables: list[str] = []

    def _expression(self, power: int) -> Term:
        left = self._unary()
        while True:
            token = self._next
            if token.kind == "word" and token.text in _WORDS:
                token = token._replace(kind="sign", text=_WORDS[token.text])
            strength = _POWERS.get(token.text, 0) if token.kind in ("sign", "keyword") else 0
            if strength <= power:
                return left
            self._take()
            left = self._conditional(left, token) if strength == 1 else self._binary(left, token)

    def _binary(self, left: Term, token: Token) -> Term:
        right = self._expression(_POWERS[token.text])
        if token.text in ("&&", "||"):
            return self._joined(left, token.text, right, token)
        return self._term(token.text, (left, right), token, (left.start, right.end))

    def _conditional(self, left: Term, token: Token) -> Term:
        one = self._nested(token, 1)
        self._expect(":")
        other = self._nested(token, 0)
        return self._term("?:", (left, one, other), token, (left.start, other.end))

    def _unary(self) -> Term:
        token = self._next
        if not token.is_("!", "-"):
            return self._members(self._primary())
        self._take()
        if token.text == "-" and self._next.kind == "number":
            number = self._take()
            value = number_of_token(f"-{number.text}", number.position)
            found = Term("literal", (), value, token.start, number.end, token.position, 1)
            return self._members(found)
        item = self._nested(token, _UNARY)
        op = "negative" if token.text == "-" else "!"
        return self._term(op, (item,), token, (token.start, item.end))

    def _primary(self) -> Term:
        token = self._take()
        if token.kind == "text":
            return self._leaf("literal", text_of_token(token.text, token.position), token)
        if token.kind == "number":
            return self._leaf("literal", number_of_token(token.text, token.position), token)
        if token.kind == "word":
            return self._named(token)
        if token.is_("("):
            return self._in_parentheses(token)
        if token.is_("["):
            items, end = self._items("]")
            return self._term("list", items, token, (token.start, end))
        if token.is_(".") and self._next.kind == "word":  # a name that is no variable
            name = self._take()._replace(start=token.start)
            return self._leaf("name", name.text, name)
        self._at -= token.kind != "end"
        raise self._unexpected("a value")

    def _named(self, token: Token) -> Term:
        if self._next.is_("("):
            return self._called(token, ())
        if self._next.kind == "text":
            raise syntax_error(_INSTEAD["bytes"], token.position)
        if token.text in _CONSTANTS:
            return self._leaf("literal", _CONSTANTS[token.text], token)
        if token.text == "not" and self._next.kind in ("word", "text", "number"):
            raise syntax_error("Write !(…) for not.", token.position)
        if token.text in _RESERVED:
            raise syntax_error(
                f'{token.text} is reserved in CEL; write attributes["{token.text}"].',
                token.position,
            )
        op = "variable" if token.text in self._variables else "name"
        return self._leaf(op, token.text, token)

    def _members(self, found: Term) -> Term:
        """Parse the fields, indexes and calls that follow a value."""
        while self._next.is_(".", "["):
            token = self._take()
            if token.text == "[":
                key = self._nested(token, 0)
                end = self._expect("]").end
                found = self._term("index", (found, key), token, (found.start, end))
                continue
            name = self._take()
            if name.kind != "word" or name.text in _CONSTANTS:
                raise syntax_error("After a dot comes a name, as in address.city.", name.position)
            if self._next.is_("("):
                found = self._called(name, (found,))
            else:
                field = self._term("field", (found,), name, (found.start, name.end))
                found = _with(field, name.text)
        return found

    def _called(self, name: Token, on: tuple[Term, ...]) -> Term:
        opening = self._take()
        start = on[0].start if on else name.start
        if name.text == "has" and not on:
            return self._has(name)
        if name.text in MACROS and on:
            return self._macro(name, on[0], opening)
        args, end = self._items()
        self._check_function(name, len(on), len(on) + len(args))
        return self._term(name.text, (*on, *args), name, (start, end))

    def _has(self, name: Token) -> Term:
        args, end = self._items()
        if len(args) != 1 or args[0].op not in ("field", "index", "name"):
            raise syntax_error("has takes a field, as in has(data.total).", name.position)
        return self._term("has", args, name, (name.start, end))

    def _macro(self, name: Token, on: Term, opening: Token) -> Term:
        variable = self._take()
        is_name = variable.kind == "word" and variable.text not in (*_CONSTANTS, *_RESERVED)
        if not is_name or not self._next.is_(","):
            raise syntax_error(
                f"{name.text} takes a variable and a condition, as in tags.{name.text}(t, t != "
                '"x").',
                variable.position,
            )
        self._take()
        self._variables.append(variable.text)
        body = self._nested(opening, 0)
        self._variables.pop()
        end = self._expect(")").end
        return _with(self._term(name.text, (on, body), name, (on.start, end)), variable.text)

    def _check_function(self, name: Token, on: int, count: int) -> None:
        expected = FUNCTIONS.get(name.text)
        as_method = name.text not in _CONVERSIONS
        if expected == count and (as_method if on else expected == 1):
            return
        if name.text in FUNCTIONS:
            form = "x.startsWith(y)" if expected == 2 else f"{name.text}(x)"
            raise syntax_error(
                f"{name.text} does not take these values; write it like {form}.", name.position
            )
        known = ", ".join(sorted(FUNCTIONS))
        message = _INSTEAD.get(
            name.text, f"There is no function {name.text[:100]}; there are {known}."
        )
        raise syntax_error(message, name.position)


def _with(term: Term, value: str) -> Term:
    return Term(term.op, term.args, value, term.start, term.end, term.position, term.depth)
