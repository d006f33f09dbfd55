r"""Reads Cambridge prefix form: parentheses, words, texts and numbers, each with its place.
Plain module.

A text stands in double quotes, with JSON's escapes, or is a word behind a quote: `'error`. A path
with other characters than a word has stands in back quotes, with the same escapes and \`.
"""

import re
from typing import NamedTuple

from eventhub.base import limits
from registrations.filters.ast import Place, Scalar
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
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?")
_CONSTANTS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
            "`": "`"}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


class Word(NamedTuple):
    """A name: of a path or of what is done. `plain`: not in back quotes."""

    text: str
    place: Place
    plain: bool = True


class Literal(NamedTuple):
    """A constant."""

    value: Scalar
    place: Place


class Form(NamedTuple):
    """What stands between two parentheses."""

    items: tuple["Item", ...]
    place: Place


Item = Word | Literal | Form


def wrong(message: str, place: Place) -> FilterSyntax:
    return FilterSyntax(message, line=place.line, column=place.column)


def end_of(text: str) -> Place:
    """The place of the first character that a filter has no more."""
    most = limits.FILTER_CHARS_MAX
    return Place(text.count("\n", 0, most) + 1, most - text.rfind("\n", 0, most))


def read(text: str) -> Item:
    """The one form, word or constant of a text.

    Raises FilterSyntax with its place, FilterTooLarge.
    """
    if len(text) > limits.FILTER_CHARS_MAX:
        raise FilterTooLarge(place=end_of(text), chars_max=limits.FILTER_CHARS_MAX)
    outer: list[tuple[Place, list[Item]]] = []
    items: list[Item] = []
    for found, place in _tokens(text):
        if found.lastgroup == "open":
            if len(outer) == limits.FILTER_DEPTH_MAX:
                raise FilterTooLarge(place=place, depth_max=limits.FILTER_DEPTH_MAX)
            outer.append((place, items))
            items = []
        elif found.lastgroup == "close":
            if not outer:
                raise wrong("This parenthesis closes nothing.", place)
            began, before = outer.pop()
            before.append(Form(tuple(items), began))
            items = before
        else:
            items.append(_item(found, place))
        if not outer and len(items) > 1:
            raise _second(*items)
    if outer:
        raise wrong("This parenthesis is not closed.", outer[-1][0])
    if not items:
        raise wrong("The filter is empty.", Place(1, 1))
    return items[0]


def _second(first: Item, second: Item) -> FilterSyntax:
    if isinstance(first, Form):
        return wrong("The filter has ended before; put an `and` or an `or` around.", second.place)
    return wrong("A filter of several words begins with a parenthesis.", first.place)


def _tokens(text: str) -> "list[tuple[re.Match[str], Place]]":
    found: list[tuple[re.Match[str], Place]] = []
    line, begin = 1, 0
    for token in _TOKENS.finditer(text):
        blank = token[1]
        if "\n" in blank:
            line += blank.count("\n")
            begin = token.start() + blank.rindex("\n") + 1
        place = Place(line, token.end(1) - begin + 1)
        if token.lastgroup == "unreadable":
            raise wrong(_unreadable(token[0][-1]), place)
        found.append((token, place))
    words = [place for token, place in found if token.lastgroup not in ("open", "close")]
    if len(words) > limits.FILTER_PARTS_MAX:
        place = words[limits.FILTER_PARTS_MAX]
        raise FilterTooLarge(place=place, parts_max=limits.FILTER_PARTS_MAX)
    return found


def _unreadable(char: str) -> str:
    if char == '"':
        return "This text does not end, or has a control character in it."
    if char == "`":
        return "This path does not end, or has a control character in it."
    return "A quote stands before a word, as in 'error; a text with blanks stands in double quotes."


def _item(found: re.Match[str], place: Place) -> Item:
    kind, text = found.lastgroup, found[found.lastgroup or 0]
    if kind == "text":
        return Literal(_unescaped(text, place), place)
    if kind == "quoted":
        return Literal(text, place)
    if kind == "path":
        return Word(_unescaped(text, place), place, plain=False)
    if text in _CONSTANTS:
        return Literal(_CONSTANTS[text], place)
    if text[0] in "-0123456789" and _NUMBER.fullmatch(text) is not None:
        return Literal(number_in(text, place), place)
    return Word(text, place)


def number_in(text: str, place: Place) -> int | float:
    """A number as it is written. Raises FilterSyntax if 64 bits do not hold it."""
    if text.lstrip("-").isdigit():
        found = int(text) if len(text) <= 20 else None
        if found is None or not limits.INTEGER_MIN <= found <= limits.INTEGER_MAX:
            raise wrong("An integer has at most 64 bits.", place)
        return found
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise wrong("The number is too large.", place)
    return value


def _unescaped(text: str, place: Place) -> str:
    if "\\" not in text and text.isascii():
        return text

    def char(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        if found[2] not in _ESCAPES:
            raise wrong(f"There is no escape \\{found[2]}; JSON's are allowed.", place)
        return _ESCAPES[found[2]]

    plain = _ESCAPE.sub(char, text)
    try:
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise wrong("A half of a surrogate pair is no character.", place) from error
