"""One setting: its documentation, how its text becomes a value of its type, how a value is shown.
It must not know which settings there are. msgspec checks types, bounds, patterns and choices.
Plain module.
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
    """Return an int, None for nothing, and the text where it is no number."""
    digits = text.strip()
    if not digits:
        return None
    return int(digits) if re.fullmatch(r"[0-9]+", digits, re.ASCII) else text


_UNITS = {"": 1, "B": 1}
for _power, _name in enumerate("KMGTP", 1):
    _UNITS |= {f"{_name}B": 1_000**_power, f"{_name}IB": 1_024**_power, f"{_name}I": 1_024**_power}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", re.ASCII)


def as_size(text: str) -> object:
    """Return a number of bytes (`10GB` is 10,000,000,000, `10GiB` is 10,737,418,240), None for
    nothing, and the text where it is no size."""
    found = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None:
        return text if text.strip() else None
    whole, _, part = found[1].partition(".")
    return int(whole) * unit + (int(part) * unit // 10 ** len(part) if part else 0)


def accept(value: Any) -> None:
    """The check of a setting whose type says everything."""


class Setting(NamedTuple):
    """Stands in the annotation of a field of Env. `check` raises ValueError, whose message ends a
    sentence."""

    variable: str  # of the environment; in a file it is the field's name
    means: str  # in Markdown; pages are named as docs/page.md
    write: str = "a text"  # what to write, said of a mistake
    unset: str = ""  # what holds if it is not given, where the field's default does not say it
    read: Callable[[str], object] = as_text
    check: Callable[[Any], None] = accept
    empty_is_unset: bool = False
    hides: Literal["", "login", "all"] = ""  # what nobody may read: a URL's login, or all of it

    def is_unset(self, given: object) -> bool:
        """An empty text counts as nothing where it could be no value."""
        return self.empty_is_unset and isinstance(given, str) and not given.strip()

    def value_of(self, given: object, kind: Any) -> Any:
        """Return what was given as a value of that type: a text is read as the environment has it,
        anything else is what the file has. Raises ValueError with what to write."""
        taken = given
        try:
            taken = self.read(given) if isinstance(given, str) else given
            found = msgspec.convert(taken, kind)
        except (msgspec.ValidationError, ValueError) as error:
            raise ValueError(self._mistake(given, taken, str(error))) from None
        if "\0" in written(found):
            raise ValueError("it holds a NUL character")
        self.check(found)
        return found

    def _mistake(self, given: object, taken: object, why: str) -> str:
        if self.hides:
            return f"it must be {self.write}"
        entry = re.search(r"`\$\[(\d+)\]`", why)  # the place in a list, as msgspec gives it
        wrong = taken[int(entry[1])] if entry and isinstance(taken, list) else given
        if "got" in why and not isinstance(wrong, str):
            return f"{why}; write {self.write}"  # msgspec's words: Expected `int`, got `bool`
        return f"{wrong!r} is not {self.write}"

    def shown(self, value: object) -> str:
        """Return a value as others may read it."""
        text = written(value)
        if self.hides == "all" and text:
            return HIDDEN
        return without_login(text) if self.hides and text else text


def written(value: object) -> str:
    """Return a value as text, as the environment has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return "" if value is None else str(value)


# Nothing that could be part of a password passes for a host or a path: an @ or a : more than there
# should be, or a ? before the @, and the text is hidden as a whole.
_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<login>[^@/?#]*@)?"
    r"(?P<place>(?:[^@:/?#\[\]]*|\[[0-9a-f:.]+\])(?::[0-9]+)?(?:/[^@:?#]*)?)(?P<more>\?[^@#]*)?",
    re.IGNORECASE,
)
_FOLDER = re.compile(r"[./][^@:=?#]*")


def without_login(text: str) -> str:
    """Return a URL without name, password and query, a folder as it is, else HIDDEN."""
    if _FOLDER.fullmatch(text):
        return text
    url = _URL.fullmatch(text)
    if url is None:
        return HIDDEN
    login, more = "…@" if url["login"] else "", "?…" if url["more"] else ""
    return f"{url['scheme']}://{login}{url['place']}{more}"
