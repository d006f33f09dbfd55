"""The texts and numbers of CEL. Plain module."""

import re
from math import isfinite

from eventhub.base import limits
from registrations.filters.ast import TextPosition
from registrations.filters.sexpr import syntax_error

_ESCAPE = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_CHARS = {
    **{"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"},
    **{char: char for char in "\\?\"'`"},
}


def number_of_token(text: str, position: TextPosition) -> int | float:
    """Return a number. Raises FilterSyntax if it does not fit in 64 bits."""
    if re.fullmatch(r"-?0[xX].*|-?[0-9]+", text) is None:
        value = float(text)
        if not isfinite(value):
            raise syntax_error("The number is too large.", position)
        return value
    digits = text.lower().lstrip("-")
    base = 16 if digits.startswith("0x") else 10
    digits = digits.removeprefix("0x").lstrip("0") or "0"
    found = int(digits, base) if len(digits) < 20 else limits.INTEGER_MAX + 1
    found = -found if text[0] == "-" else found
    if not limits.INTEGER_MIN <= found < 1 << 63:
        raise syntax_error("An integer has at most 64 bits.", position)
    return found


def text_of_token(token: str, position: TextPosition) -> str:
    """Return the text in quotes. Raises FilterSyntax for an unknown escape."""
    is_raw = token[0] in "rR"
    quoted = token[1:] if is_raw else token
    marks = 3 if quoted[:3] in ('"""', "'''") and len(quoted) >= 6 else 1
    inner, before = quoted[marks:-marks], token[:marks]
    if is_raw or "\\" not in inner:
        return inner

    def char(found: re.Match[str]) -> str:
        *codes, other = found.groups()
        place = _after(before + inner[: found.start()], position)
        for code, base in zip(codes, (16, 16, 16, 8), strict=True):
            if code:
                return _char(int(code, base), place)
        if other not in _CHARS:
            raise syntax_error(f"Unknown escape \\{other}.", place)
        return _CHARS[other]

    return _ESCAPE.sub(char, inner)


def _after(text: str, start: TextPosition) -> TextPosition:
    """Return the position after a text."""
    lines = text.count("\n")
    column = len(text) - text.rfind("\n") if lines else start.column + len(text)
    return TextPosition(start.line + lines, column)


def _char(code: int, position: TextPosition) -> str:
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise syntax_error("The escape is no character.", position)
    return chr(code)
