"""The grammar of READY's simple expressions, and what is wrong with a text that it does not fit.
Plain module.

It knows which words may stand where; what they come to is ready.py's.
"""

import re
from typing import Any, cast

from lark import Token
from lark.parsers.lalr_interactive_parser import InteractiveParser

from registrations.filters.ast import Place
from registrations.filters.errors import FilterSyntax
from registrations.filters.sexpr import wrong

# Types are words in one half of a filter, components and constants in the other: the lexer looks
# for those only which may come next.
GRAMMAR = r"""
?start: _BRACE simple _CLOSE_BRACE | simple
simple: [VARIABLE _COLON] types [_BAR expression]
types: (TYPE | TEXT) (_COMMA (TYPE | TEXT))*
expression: any
?any: all (OR all)*
?all: test (AND test)*
?test: sum
    | sum (EQUALITY | ORDER) sum -> compare
    | sum IN path -> member
    | sum TILDE sum -> substring
?sum: term | sum (PLUS | MINUS) term -> arithmetic
?term: factor | term (STAR | SLASH) factor -> arithmetic
?factor: atom
    | NOT factor -> negation
    | MINUS NUMBER -> negative
    | MINUS (path | group) -> minus
?atom: path | group | NUMBER -> number | TEXT -> text | (TRUE | FALSE) -> truth
    | EXIST path -> exist
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
CLOSES = {"_OPEN": "_CLOSE", "_BRACE": "_CLOSE_BRACE"}
_HELP = (  # by what stands where the text cannot go on
    (r"=(?!=)", "Equality is written ==."),
    (
        r"'(?:[^'\\]|\\['\\])*\\(?!['\\])",
        "In a text a backslash stands before a quote or another one.",
    ),
    (r"'(?:[^'\\]|\\['\\])*\Z", "This text does not end."),
    (r'"', "A text stands in single quotes, as in 'error'."),
    (
        r"\$'(?!(?:[^'\\\x00-\x1f]|\\['\\])+')",
        "This component does not end, is empty, or has a control character in it.",
    ),
    (r"\$(?!\.?[^\W\d]|')", "After $ comes the name of a component, as in $Priority or $pos.x."),
    (r"\[", "Members have no numbers here; of a list each one counts, as in 'a' in $list."),
    (r"&&|\|\||!(?!=)", "These are words here: and, or, not."),
    (
        r"(?!(?:and|or|not|in|exist|TRUE|FALSE)\b)(?i:and|or|not|in|exist|true|false)\b",
        "It is written: and, or, not, in, exist, TRUE, FALSE.",
    ),
)
_NUMBER = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])")
_DIGIT = re.compile(r"\.?[0-9]")
_WORD = re.compile(r"(?!(?:and|or|not|in|exist|TRUE|FALSE)\b)[^\W\d]")
_COMPARING = re.compile(r"[=!]=|[<>]")


def unfit(text: str, at: int, state: InteractiveParser, opened: list[Token]) -> str:
    """What to do where the text cannot go on; `opened`: what is not closed there."""
    rest = text[at:]
    for pattern, message in _HELP:
        if re.match(pattern, rest):
            return message
    if rest[0] in ")}":
        if not opened or (rest[0] == ")" and opened[-1].type == "_BRACE"):
            return "This closes nothing."
        if rest[0] == "}" and opened[-1].type == "_OPEN":
            return "A parenthesis before this brace is not closed."
    if _DIGIT.match(rest) and not _NUMBER.match(rest):
        return "A number is written as in JSON: 5, 0.5, 1e6."
    if "PATH" in _choices(state) and _WORD.match(rest):
        return "A component begins with $; names that are no words, and texts, stand in quotes."
    return _wanted(rest, state)


def _wanted(rest: str, state: InteractiveParser) -> str:
    choices = _choices(state)
    if "TYPE" in choices:
        return "Here a type is wanted, as in MyAlarm or Mail::Msg.*; any is *::*."
    if "NUMBER" in choices:
        return "Here a component or a value is wanted, as in $Priority > 5."
    if "PATH" in choices:
        return "Here a component is wanted, as in $list."
    if "_BAR" in choices:
        return (
            "A type, domain::type, is followed by | and an expression; with blanks, it is quoted."
        )
    if _COMPARING.match(rest):
        return "Comparisons do not follow each other; join them with `and`."
    return "Here the filter ends, or goes on with `and` or `or`."


def unfinished(text: str, state: InteractiveParser, opened: list[Token]) -> FilterSyntax:
    """The error of a text that ends before the filter does."""
    if opened and CLOSES[opened[-1].type] in _choices(state):
        name = "parenthesis" if opened[-1].type == "_OPEN" else "brace"
        return wrong(f"This {name} is not closed.", place_of(opened[-1]))
    end = Place(text.count("\n") + 1, len(text) - text.rfind("\n"))
    return wrong(f"The filter ends too early. {_wanted('', state)}", end)


def place_of(token: Token) -> Place:
    return Place(token.line or 1, token.column or 1)


def _choices(state: InteractiveParser) -> dict[str, Any]:
    """By name, the kinds of words that may come next."""
    return cast(dict[str, Any], state.choices())  # type: ignore[no-untyped-call]
