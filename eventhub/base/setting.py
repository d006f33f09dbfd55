"""One setting: its documentation, how its text is parsed, and how its value is rendered. msgspec
checks types, bounds, patterns and choices. It must not know which settings exist. Plain module.
"""

import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import msgspec

SWITCH_WORDS = "true, yes, on, 1, false, no, off or 0"
SIZE_WORDS = "a size such as 10GiB, 500MB or a number of bytes, above 0 and at most 1PiB"
HIDDEN = "(hidden)"


def as_text(text: str) -> object:
    return text


def as_word(text: str) -> object:
    """Return a choice; upper and lower case are the same."""
    return text.strip().lower()


def as_list(text: str) -> object:
    return [part.strip() for part in text.split(",") if part.strip()]


_SWITCH = {"1": True, "true": True, "yes": True, "on": True}
_SWITCH |= {"": False, "0": False, "false": False, "no": False, "off": False}


def as_switch(text: str) -> object:
    return _SWITCH.get(text.strip().lower(), text)


def as_number(text: str) -> object:
    """Return an int, None for an empty text, and the text itself if it is no number."""
    digits = text.strip()
    if not digits:
        return None
    return int(digits) if re.fullmatch(r"[0-9]+", digits, re.ASCII) else text


_UNITS = {"": 1, "B": 1}
for _power, _name in enumerate("KMGTP", 1):
    _UNITS |= {f"{_name}B": 1_000**_power, f"{_name}IB": 1_024**_power, f"{_name}I": 1_024**_power}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", re.ASCII)


def as_size(text: str) -> object:
    """Return a number of bytes (`10GB` is 10,000,000,000, `10GiB` is 10,737,418,240), None for an
    empty text, and the text itself if it is no size.
    """
    found = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None:
        return text if text.strip() else None
    whole, _, part = found[1].partition(".")
    return int(whole) * unit + (int(part) * unit // 10 ** len(part) if part else 0)


def accept(value: Any) -> None:
    """Accept any value: the check of a setting whose type says everything."""


class Setting(NamedTuple):
    """The annotation of a field of Env. `check` raises ValueError; its message ends a sentence."""

    variable: str  # of the environment; in a file it is the field's name
    description: str  # in Markdown; pages are named as docs/page.md
    expected: str = "a text"  # what to write, for error messages
    default: str = ""  # the default's description, where the field's value does not say it
    read: Callable[[str], object] = as_text
    check: Callable[[Any], None] = accept
    empty_is_unset: bool = False
    hidden: Literal["", "login", "all"] = ""  # what is never rendered: a URL's login, or all of it

    def is_unset(self, given: object) -> bool:
        """Return whether this is an empty text that counts as unset."""
        return self.empty_is_unset and isinstance(given, str) and not given.strip()

    def value_of(self, given: object, kind: Any) -> Any:
        """Return a value of type `kind`: a text is parsed as from the environment, anything else is
        from the file. Raises ValueError with what to write.
        """
        parsed = given
        try:
            parsed = self.read(given) if isinstance(given, str) else given
            value = msgspec.convert(parsed, kind)
        except (msgspec.ValidationError, ValueError) as error:
            raise ValueError(self._mistake(given, parsed, str(error))) from None
        if "\0" in as_variable(value):
            raise ValueError("it holds a NUL character")
        self.check(value)
        return value

    def _mistake(self, given: object, parsed: object, why: str) -> str:
        if self.hidden:
            return f"it must be {self.expected}"
        entry = re.search(r"`\$\[(\d+)\]`", why)  # the index in a list, as msgspec writes it
        wrong = parsed[int(entry[1])] if entry and isinstance(parsed, list) else given
        if "got" in why and not isinstance(wrong, str):
            return f"{why}; write {self.expected}"  # msgspec's words: Expected `int`, got `bool`
        return f"{wrong!r} is not {self.expected}"

    def rendered(self, value: object) -> str:
        """Return the text of a value without secrets."""
        text = as_variable(value)
        if self.hidden == "all" and text:
            return HIDDEN
        return without_login(text) if self.hidden and text else text


def as_variable(value: object) -> str:
    """Return the text of a value in an environment variable."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return "" if value is None else str(value)


# A part of a password must not pass for a host or a path: with an extra @ or :, or a ? before the
# @, the whole text is hidden.
_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<login>[^@/?#]*@)?"
    r"(?P<rest>(?:[^@:/?#\[\]]*|\[[0-9a-f:.]+\])(?::[0-9]+)?(?:/[^@:?#]*)?)(?P<query>\?[^@#]*)?",
    re.IGNORECASE,
)
_FOLDER = re.compile(r"[./][^@:=?#]*")


def without_login(text: str) -> str:
    """Return a URL without user name, password and query, a folder unchanged, else HIDDEN."""
    if _FOLDER.fullmatch(text):
        return text
    url = _URL.fullmatch(text)
    if url is None:
        return HIDDEN
    login, query = "…@" if url["login"] else "", "?…" if url["query"] else ""
    return f"{url['scheme']}://{login}{url['rest']}{query}"
