"""The grammar of READY's compound patterns, and its syntax errors. Plain module.

Inside braces it is the grammar of simple expressions (registrations/filters/ready_grammar.py);
conditions and values over variables have the same operators. parser.py builds the tree.
"""

import re
from typing import Any, NamedTuple, cast

from lark import Token
from lark.parsers.lalr_interactive_parser import InteractiveParser

from registrations.filters.ast import TextPosition
from registrations.filters.errors import FilterSyntax
from registrations.filters.ready_grammar import CLOSES, RULES, position_of
from registrations.filters.ready_grammar import unfit as unfit_in_element
from registrations.filters.sexpr import syntax_error

FUNCTIONS = ("count", "sum", "min", "max", "avg", "span", "first", "last", "distinct", "counter")

GRAMMAR = rf"""
start: (part | bare) modifier*
?part: either (SEMICOLON either)* -> joined
?either: both (EITHER both)* -> joined
?both: unless (BOTH unless)* -> joined
?unless: postfixed | postfixed BUTNOT postfixed -> joined
?postfixed: element | _OPEN part _CLOSE
    | postfixed WHERE any -> where
    | postfixed DO action (_COMMA action)* -> do
bare: [VARIABLE _COLON] types [_BAR expression]
element: _BRACE [VARIABLE _COLON] types [_BAR expression] _CLOSE_BRACE
    | _BRACE SEQUENCE range _COLON types [_BAR expression] _CLOSE_BRACE -> sequence
range: _OPEN_RANGE INTEGER _UP_TO (INTEGER | STAR) _CLOSE_RANGE
action: NOTIFY _OPEN names _CLOSE [_TO TEXT] -> notify
    | ANNOUNCE _OPEN (NAME | announced) _CLOSE [_INTO TEXT] -> announce
    | ASSIGN NAME _EQUAL TYPE_NAME attributes -> assign
    | INCREMENT NAME [_BY sum] -> increment
names: [NAME (_COMMA NAME)*]
announced: TYPE_NAME _COMMA attributes
attributes: _BRACE [attribute (_COMMA attribute)*] _CLOSE_BRACE
attribute: (NAME | TEXT) _EQUAL sum
modifier: PER path -> per
    | WITHIN DURATION -> within
    | LAST INTEGER -> last
    | (ONCE | REPEAT) -> how_often
?value: path | COMPONENT -> component
    | FUNCTION _OPEN COMPONENT _CLOSE -> function

COMPONENT.-1: /[^\W\d]\w*(?:\.(?:[^\W\d]\w*|'(?:[^'\\\x00-\x1f]|\\['\\])+'))*/
SEQUENCE.3: /[^\W\d]\w*(?=\s*\[)/
FUNCTION.3: /(?:{"|".join(FUNCTIONS)})(?=\s*\()/
NAME.-1: /[^\W\d]\w*/
TYPE_NAME.1: /[\w.-]+(?:::[\w.-]+)?(?=\s*[,{{])/
INTEGER: /[0-9]+\b/
DURATION: /[0-9]+(?:ms|s|m|h|d)\b/
SEMICOLON: ";"
EITHER: "||"
BOTH: "&&"
BUTNOT: /butnot\b/
WHERE: /where\b/
DO: /do\b/
NOTIFY: /notify\b/
ANNOUNCE: /announce\b/
ASSIGN: /assign\b/
INCREMENT: /increment\b/
PER: /per\b/
WITHIN: /within\b/
LAST: /last\b/
ONCE: /once\b/
REPEAT: /repeat\b/
_TO: /to\b/
_INTO: /into\b/
_BY: /by\b/
_EQUAL: "="
_OPEN_RANGE: "["
_CLOSE_RANGE: "]"
_UP_TO: ".."
{RULES}"""
_OPENING = {**CLOSES, "_OPEN_RANGE": "_CLOSE_RANGE"}
_PAIRS = {"(": ")", "{": "}", "[": "]"}
_RANGE = {"_OPEN_RANGE", "INTEGER", "_UP_TO", "_CLOSE_RANGE", "_COLON"}  # of a sequence
_NAMES = {"_OPEN": "parenthesis", "_BRACE": "brace", "_OPEN_RANGE": "bracket"}
_WORDS = "where, do, per, within, last, once, repeat"
_HELP = (  # by the text where parsing fails
    (r"&(?!&)", "Both parts are joined by &&."),
    (r"\|(?!\|)", "Either part is joined by ||; the expression of an element is in its braces."),
    (r"->|=>|,", "A part that follows another is joined by ;."),
    (r"butnot\b", "Put one of several butnot into parentheses."),
    (r"(?i:and|or|then|followed_by|until|not)\b", "Parts are joined by &&, ||, ; and butnot."),
    (r"=(?!=)", "Equality is written ==."),
    (r"\(", f"Two parts are joined by an operator; the functions are {', '.join(FUNCTIONS)}."),
)
_EXPECTED = (  # by a token that may come next
    ("DURATION", "Expected a duration, as in within 5m; the units are ms, s, m, h and d."),
    ("_UP_TO", "A sequence has its least and greatest number, as in [2..4] or [1..*]."),
    ("INTEGER", "Expected a whole number."),
    ("NOTIFY", "Expected an action: notify(…), announce(…), assign v = Type{…} or increment n."),
    ("TYPE_NAME", "Expected a new event, as in Summary{top = max(v.Priority)}."),
    ("_EQUAL", "Expected = and a value."),
    ("NAME", "Expected a name."),
    ("FUNCTION", "Expected a component of a variable or a value, as in a.Priority > 5."),
    ("COMPONENT", "Expected a variable or a component of one, as in v.Priority."),
    ("PATH", "Expected a component, as in per $user."),
    ("_CLOSE_RANGE", "A sequence has its least and greatest number, as in [2..4] or [1..*]."),
    ("TYPE", "Expected an element, as in {a: MyAlarm}, or a parenthesis."),
    ("_BRACE", "Expected an element, as in {a: MyAlarm}, or a parenthesis."),
    ("TEXT", "Expected a text in single quotes."),
    ("WHERE", f"Expected an operator, {_WORDS} or the end of the pattern."),
    ("AND", f"Expected `and`, `or`, an operator, {_WORDS} or the end of the pattern."),
    ("PER", "Expected per, within, last, once, repeat or the end of the pattern."),
    ("_COLON", "Expected : and a type, as in {v[2..4]: MyAlarm}."),
    ("_OPEN", "Expected an opening parenthesis."),
    ("_COMMA", "Expected a comma or the closing bracket."),
    ("_CLOSE", "Expected a closing parenthesis."),
)


class Opened(NamedTuple):
    """An open bracket. `element`: of an element, in which the words of its expression are."""

    token: Token
    element: bool


class Brackets:
    """The open brackets while a pattern is read."""

    def __init__(self) -> None:
        self.open: list[Opened] = []
        self._bare = False  # the pattern is an element without braces

    def take(self, token: Token, state: InteractiveParser) -> None:
        """Take the next token; `state`: of the parser before it."""
        if token.type in _OPENING:
            element = token.type == "_BRACE" and "_OPEN" in choices_of(state)
            self.open.append(Opened(token, element))
        elif self.open and token.type == _OPENING[self.open[-1].token.type]:
            self.open.pop()
        elif not self.open and token.type in ("TYPE", "TEXT", "VARIABLE"):
            self._bare = True
        elif token.type in ("PER", "WITHIN", "LAST", "ONCE", "REPEAT"):
            self._bare = False

    @property
    def in_element(self) -> bool:
        """Whether the next token is a part of an element."""
        return self._bare or any(one.element for one in self.open)


def unfit(text: str, at: int, state: InteractiveParser, brackets: Brackets) -> str:
    """Return the message for the text where parsing fails."""
    rest = text[at:]
    choices = choices_of(state)
    opened = brackets.open
    if brackets.in_element and _RANGE.isdisjoint(choices):
        return unfit_in_element(text, at, state, [one.token for one in opened])
    if rest[0] in ")}]" and (not opened or rest[0] != _PAIRS[opened[-1].token]):
        return "There is no matching opening bracket."
    for pattern, message in _HELP if "WHERE" in choices else ():
        if re.match(pattern, rest):
            return message
    return _expected(choices)


def unfinished(text: str, state: InteractiveParser, brackets: Brackets) -> FilterSyntax:
    """Return the error of an incomplete pattern."""
    choices = choices_of(state)
    if brackets.open:
        last = brackets.open[-1].token
        if _OPENING[last.type] in choices:
            message = f"This {_NAMES[last.type]} is not closed."
            return syntax_error(message, position_of(last))
    end = TextPosition(text.count("\n") + 1, len(text) - text.rfind("\n"))
    return syntax_error(f"The pattern ends too early. {_expected(choices)}", end)


def choices_of(state: InteractiveParser) -> dict[str, Any]:
    """Return the tokens that may come next, by name."""
    return cast(dict[str, Any], state.choices())  # type: ignore[no-untyped-call]


def _expected(choices: dict[str, Any]) -> str:
    messages = (message for token, message in _EXPECTED if token in choices)
    return next(messages, "This does not belong here.")
