"""The grammar of READY's simple expressions, and its syntax errors. Plain module.

It has the syntax only; ready.py builds the tree.
"""

import re
from typing import Any, cast

from lark import Token
from lark.parsers.lalr_interactive_parser import InteractiveParser

from registrations.filters.ast import TextPosition
from registrations.filters.errors import FilterSyntax
from registrations.filters.sexpr import syntax_error

# What an expression reads is a `value`: a path here, also a variable in compound patterns.
# Types are words in one half of a filter, components and constants in the other: the lexer matches
# only the tokens that may come next.
_START = r"""
?start: _BRACE simple _CLOSE_BRACE | simple
simple: [VARIABLE _COLON] types [_BAR expression]
?value: path
"""
RULES = r"""
types: (TYPE | TEXT) (_COMMA (TYPE | TEXT))*
expression: any
?any: all (OR all)*
?all: test (AND test)*
?test: sum
    | sum (EQUALITY | ORDER) sum -> compare
    | sum IN value -> member
    | sum TILDE sum -> substring
?sum: term | sum (PLUS | MINUS) term -> arithmetic
?term: factor | term (STAR | SLASH) factor -> arithmetic
?factor: atom
    | NOT factor -> negation
    | MINUS NUMBER -> negative
    | MINUS (value | group) -> minus
?atom: value | group | NUMBER -> number | TEXT -> text | (TRUE | FALSE) -> truth
    | EXIST value -> exist
?group: _OPEN any _CLOSE
path: PATH

VARIABLE.2: /[^\W\d]\w*(?=\s*:(?!:))/
TYPE: /[\w.*-]+(?:::[\w.*-]+)?/
PATH: /\$(?:\.?[^\W\d]\w*(?:\.\w+)*|'(?:[^'\\\x00-\x1f]|\\['\\])+')/
TEXT: /'(?:[^'\\]|\\['\\])*'/
NUMBER: /(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])/
EQUALITY: "==" | "!="
ORDER: "<=" | ">=" | "<" | ">"
AND: /and\b/
OR: /or\b/
NOT: /not\b/
IN: /in\b/
EXIST: /exist\b/
TRUE: /TRUE\b/
FALSE: /FALSE\b/
TILDE: "~"
PLUS: "+"
MINUS: "-"
STAR: "*"
SLASH: "/"
_BRACE: "{"
_CLOSE_BRACE: "}"
_OPEN: "("
_CLOSE: ")"
_COLON: ":"
_COMMA: ","
_BAR: "|"
%ignore /\s+/
"""
GRAMMAR = _START + RULES
CLOSES = {"_OPEN": "_CLOSE", "_BRACE": "_CLOSE_BRACE"}
_HELP = (  # by the text where parsing fails
    (r"=(?!=)", "Equality is written ==."),
    (
        r"'(?:[^'\\]|\\['\\])*\\(?!['\\])",
        "In a text, a backslash escapes a quote or a backslash only.",
    ),
    (r"'(?:[^'\\]|\\['\\])*\Z", "The text has no closing quote."),
    (r'"', "Texts are in single quotes, as in 'error'."),
    (
        r"\$'(?!(?:[^'\\\x00-\x1f]|\\['\\])+')",
        "The component is empty, has no closing quote, or contains a control character.",
    ),
    (r"\$(?!\.?[^\W\d]|')", "After $ comes the name of a component, as in $Priority or $pos.x."),
    (r"\[", "List members cannot be indexed; test all of them, as in 'a' in $list."),
    (r"&&|\|\||!(?!=)", "Write the operators as words: and, or, not."),
    (
        r"(?!(?:and|or|not|in|exist|TRUE|FALSE)\b)(?i:and|or|not|in|exist|true|false)\b",
        "Keywords are written and, or, not, in, exist, TRUE, FALSE.",
    ),
)
_NUMBER = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])")
_DIGIT = re.compile(r"\.?[0-9]")
_WORD = re.compile(r"(?!(?:and|or|not|in|exist|TRUE|FALSE)\b)[^\W\d]")
_COMPARING = re.compile(r"[=!]=|[<>]")


def unfit(text: str, at: int, state: InteractiveParser, opened: list[Token]) -> str:
    """Return the message for the text where parsing fails; `opened`: the open brackets there."""
    rest = text[at:]
    for pattern, message in _HELP:
        if re.match(pattern, rest):
            return message
    if rest[0] in ")}":
        if not opened or (rest[0] == ")" and opened[-1].type == "_BRACE"):
            return "There is no matching opening bracket."
        if rest[0] == "}" and opened[-1].type == "_OPEN":
            return "A parenthesis before this brace is not closed."
    if _DIGIT.match(rest) and not _NUMBER.match(rest):
        return "A number is written as in JSON: 5, 0.5, 1e6."
    if "PATH" in _choices(state) and _WORD.match(rest):
        return "A component begins with $; quote texts and names that are not words."
    return _expected(rest, state)


def _expected(rest: str, state: InteractiveParser) -> str:
    choices = _choices(state)
    if "TYPE" in choices:
        return "Expected a type, as in MyAlarm or Mail::Msg.*; *::* is any type."
    if "NUMBER" in choices:
        return "Expected a component or a value, as in $Priority > 5."
    if "PATH" in choices:
        return "Expected a component, as in $list."
    if "_BAR" in choices:
        return "After a type, domain::type, expected | and an expression; quote a type with spaces."
    if _COMPARING.match(rest):
        return "Comparisons cannot be chained; join them with `and`."
    return "Expected `and`, `or` or the end of the filter."


def unfinished(text: str, state: InteractiveParser, opened: list[Token]) -> FilterSyntax:
    """Return the error of an incomplete filter."""
    if opened and CLOSES[opened[-1].type] in _choices(state):
        name = "parenthesis" if opened[-1].type == "_OPEN" else "brace"
        return syntax_error(f"This {name} is not closed.", position_of(opened[-1]))
    end = TextPosition(text.count("\n") + 1, len(text) - text.rfind("\n"))
    return syntax_error(f"The filter ends too early. {_expected('', state)}", end)


def position_of(token: Token) -> TextPosition:
    return TextPosition(token.line or 1, token.column or 1)


def _choices(state: InteractiveParser) -> dict[str, Any]:
    """Return the tokens that may come next, by name."""
    return cast(dict[str, Any], state.choices())  # type: ignore[no-untyped-call]
