"""The conformance tests of CEL, read from their text format."""

import re
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any, NamedTuple

FILES = sorted(File(__file__).parent.glob("*.textproto"))
_TOKENS = re.compile(
    r"""(?:\s|\#[^\n]*)*(?:(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<sign>[{}:<>,;])
        |(?P<word>[^\s{}:<>,;"'\#]+))""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))|(.))", re.DOTALL
)
_CHARS = {"n": b"\n", "t": b"\t", "r": b"\r", "a": b"\a", "b": b"\b", "f": b"\f", "v": b"\v"}
_SCALARS = {"int64_value": int, "double_value": float, "string_value": str}
OTHER = object()  # a value that the hub's subset does not have


class Case(NamedTuple):
    """A case. `value`: the expected one; None and `fails` if an error is expected."""

    name: str
    text: str
    bindings: dict[str, Any]
    value: Any
    fails: bool


def cases(file: File) -> Iterator[Case]:
    for section in _message(_tokens(file.read_text()))["section"]:
        for test in section.get("test", ()):
            values = test.get("value", ())
            yield Case(
                f"{section['name'][0]}/{test['name'][0]}",
                test["expr"][0],
                {
                    one["key"][0]: _value(one["value"][0]["value"][0])
                    for one in test.get("bindings", ())
                },
                _value(values[0]) if values else "eval_error" not in test,
                "eval_error" in test,
            )


def _value(found: dict[str, Any]) -> Any:
    [(kind, [value, *_])] = found.items()
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if kind == "bool_value":
        return value == "true"
    if kind == "null_value":
        return None
    if kind == "list_value":
        return [_value(one) for one in value.get("values", ())]
    if kind == "map_value":
        entries = value.get("entries", ())
        return {_value(one["key"][0]): _value(one["value"][0]) for one in entries}
    return OTHER


def _message(tokens: Iterator[str]) -> dict[str, list[Any]]:
    """Read fields up to a closing brace; a repeated field has several values."""
    found: dict[str, list[Any]] = {}
    for name in tokens:
        if name in "}>":
            return found
        if name in ",;":
            continue
        sign = next(tokens)
        value: Any = next(tokens) if sign == ":" else sign
        value = _message(tokens) if value in ("{", "<") else value
        found.setdefault(name, []).append(value.lstrip("\0") if isinstance(value, str) else value)
    return found


def _tokens(text: str) -> Iterator[str]:
    """Yield the tokens; adjacent texts are one, marked by a first NUL."""
    joined: bytes | None = None
    for token in _TOKENS.finditer(text):
        if token["text"]:
            joined = (joined or b"") + _unescaped(token["text"][1:-1])
            continue
        if joined is not None:
            yield "\0" + joined.decode(errors="replace")
            joined = None
        yield token["sign"] or token["word"]


def _unescaped(text: str) -> bytes:
    found, at = b"", 0
    for escape in _ESCAPE.finditer(text):
        octal, code, short, long, char = escape.groups()
        found += text[at : escape.start()].encode()
        if short or long:
            found += chr(int(short or long, 16)).encode()
        elif octal or code:
            found += bytes([int(octal or code, 8 if octal else 16)])
        else:
            found += _CHARS.get(char, char.encode())
        at = escape.end()
    return found + text[at:].encode()
