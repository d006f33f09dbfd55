r"""The reader of Cambridge prefix form: parentheses, words, texts and numbers, each with its
position. Plain module.

A text is in double quotes, with JSON's escapes, or a word after a single quote: `'error`. A path
with characters that a word cannot have is in back quotes, with the same escapes and \`.
"""

import re
from typing import NamedTuple

from eventhub.base import limits
from registrations.filters.ast import Scalar, TextPosition
from registrations.filters.errors import FilterSyntax, FilterTooLarge

_TOKENS = re.compile(
    r"""(\s*)(?:
        (?P<open>\() | (?P<close>\))
      | "(?P<text>(?:[^"\\\x00-\x1f]|\\.)*)"
      | `(?P<path>(?:[^`\\\x00-\x1f]|\\.)*)`
      | '(?P<quoted>[^\s()"'`]+)
      | (?P<word>[^\s()"'`]+)
      | (?P<unreadable>\S))""",
    re.VERBOSE,
)
# a comment, or what a semicolon does not begin one in
_COMMENT = re.compile(r"""("(?:[^"\\\x00-\x1f]|\\.)*"|`(?:[^`\\\x00-\x1f]|\\.)*`)|;[^\n]*""")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?")
_CONSTANTS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
            "`": "`"}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


class Word(NamedTuple):
    """The name of a path or of an operator. `plain`: not in back quotes."""

    text: str
    position: TextPosition
    plain: bool = True


class Literal(NamedTuple):
    """A constant."""

    value: Scalar
    position: TextPosition


class ParenthesizedForm(NamedTuple):
    """The items between two parentheses."""

    items: tuple["Item", ...]
    position: TextPosition


Item = Word | Literal | ParenthesizedForm


def syntax_error(message: str, position: TextPosition) -> FilterSyntax:
    return FilterSyntax(message, line=position.line, column=position.column)


class FormBounds(NamedTuple):
    """The maximum size of a text: its characters, its words and constants, its nested forms."""

    chars_max: int = limits.FILTER_CHARS_MAX
    parts_max: int = limits.FILTER_PARTS_MAX
    depth_max: int = limits.FILTER_DEPTH_MAX


_OF_FILTERS = FormBounds()


def end_of(text: str, most: int = limits.FILTER_CHARS_MAX) -> TextPosition:
    """Return the position of the first character beyond the maximum length of a text."""
    return TextPosition(text.count("\n", 0, most) + 1, most - text.rfind("\n", 0, most))


def read(text: str) -> Item:
    """Read the only form, word or constant of a filter.

    Raises FilterSyntax with its position, FilterTooLarge.
    """
    items = _read(text, _OF_FILTERS, several=False)
    if not items:
        raise syntax_error("The filter is empty.", TextPosition(1, 1))
    return items[0]


def read_forms(text: str, bounds: FormBounds) -> tuple[Item, ...]:
    """Read all forms of a text, in which `;` begins a comment up to the end of the line.

    Raises FilterSyntax with its position, FilterTooLarge.
    """
    if len(text) <= bounds.chars_max:
        text = _COMMENT.sub(lambda found: found[1] or " " * len(found[0]), text)
    return _read(text, bounds, several=True)


def _read(text: str, bounds: FormBounds, *, several: bool) -> tuple[Item, ...]:
    if len(text) > bounds.chars_max:
        raise FilterTooLarge(position=end_of(text, bounds.chars_max), chars_max=bounds.chars_max)
    outer: list[tuple[TextPosition, list[Item]]] = []
    items: list[Item] = []
    for found, position in _tokens(text, bounds):
        if found.lastgroup == "open":
            if len(outer) == bounds.depth_max:
                raise FilterTooLarge(position=position, depth_max=bounds.depth_max)
            outer.append((position, items))
            items = []
        elif found.lastgroup == "close":
            if not outer:
                raise syntax_error("The parenthesis has no matching opening parenthesis.", position)
            began, before = outer.pop()
            before.append(ParenthesizedForm(tuple(items), began))
            items = before
        else:
            items.append(_item(found, position))
        if not several and not outer and len(items) > 1:
            raise _second(*items)
    if outer:
        raise syntax_error("This parenthesis is not closed.", outer[-1][0])
    return tuple(items)


def _second(first: Item, second: Item) -> FilterSyntax:
    if isinstance(first, ParenthesizedForm):
        return syntax_error(
            "The filter has ended before this; enclose both in an `and` or an `or`.",
            second.position,
        )
    return syntax_error("A filter of several words begins with a parenthesis.", first.position)


def _tokens(text: str, bounds: FormBounds) -> "list[tuple[re.Match[str], TextPosition]]":
    found: list[tuple[re.Match[str], TextPosition]] = []
    line, begin = 1, 0
    for token in _TOKENS.finditer(
        text.rstrip()
    ):  # at trailing blanks it would begin again and again
        blank = token[1]
        if "\n" in blank:
            line += blank.count("\n")
            begin = token.start() + blank.rindex("\n") + 1
        position = TextPosition(line, token.end(1) - begin + 1)
        if token.lastgroup == "unreadable":
            raise syntax_error(_unreadable(token[0][-1]), position)
        found.append((token, position))
    words = [position for token, position in found if token.lastgroup not in ("open", "close")]
    if len(words) > bounds.parts_max:
        raise FilterTooLarge(position=words[bounds.parts_max], parts_max=bounds.parts_max)
    return found


def _unreadable(char: str) -> str:
    if char == '"':
        return "The text has no closing quote, or contains a control character."
    if char == "`":
        return "The path has no closing back quote, or contains a control character."
    return "A quote precedes a word, as in 'error; a text with spaces is in double quotes."


def _item(found: re.Match[str], position: TextPosition) -> Item:
    kind, text = found.lastgroup, found[found.lastgroup or 0]
    if kind == "text":
        return Literal(_unescaped(text, position), position)
    if kind == "quoted":
        return Literal(text, position)
    if kind == "path":
        return Word(_unescaped(text, position), position, plain=False)
    if text in _CONSTANTS:
        return Literal(_CONSTANTS[text], position)
    if text[0] in "-0123456789" and _NUMBER.fullmatch(text) is not None:
        return Literal(number_in(text, position), position)
    return Word(text, position)


def number_in(text: str, position: TextPosition) -> int | float:
    """Parse a number. Raises FilterSyntax if it does not fit in 64 bits."""
    if text.lstrip("-").isdigit():
        found = int(text) if len(text) <= 20 else None
        if found is None or not limits.INTEGER_MIN <= found <= limits.INTEGER_MAX:
            raise syntax_error("An integer has at most 64 bits.", position)
        return found
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise syntax_error("The number is too large.", position)
    return value


def _unescaped(text: str, position: TextPosition) -> str:
    if "\\" not in text and text.isascii():
        return text

    def char(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        if found[2] not in _ESCAPES:
            raise syntax_error(f"Unknown escape \\{found[2]}; use JSON's escapes.", position)
        return _ESCAPES[found[2]]

    plain = _ESCAPE.sub(char, text)
    try:
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise syntax_error("An unpaired surrogate is not a character.", position) from error
