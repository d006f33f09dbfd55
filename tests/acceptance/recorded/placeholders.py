"""Replaces what differs from run to run in an answer. The same value gets the same number wherever
it stands, so that a recording still says which values are equal.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
_KINDS = {
    "key": r"ehk_[a-z0-9]{12}_[A-Za-z0-9_-]{43}",
    "token": r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+",
    "secret": r"whsec_[A-Za-z0-9+/]{30,}=*",
    "whpk": r"whpk_[A-Za-z0-9+/]{43}=",
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "time": _TIME,
    "cookie": r"(?<=csrftoken=)\w+|(?<=sessionid=)\w+",
    "setup": r"\b[0-9a-z]{6}-[0-9a-f]{32}\b",
    "date": r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT",
    "hex": r"\b(?:[0-9a-f]{96}|[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32})\b",
    "webhook": r"(?<=/v1/webhooks/)[A-Za-z0-9_-]{43}",
    "csrf": r"\b[A-Za-z0-9]{64}\b",
}
_ALL = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _KINDS.items()))
_KEY = re.compile(_KINDS["key"])
_EXAMPLE = "2026-11-21T08:00:00"  # of texts that show how a time is written
_NEAR = timedelta(days=366)  # times that are further away stand in the calls
# Figures of the machine and its moment, by the name of their field.
_MEASURED = frozenset(
    (
        "used",  # of limits
        "used_bytes",
        "usage",
        "held",  # of explanations
        "free_bytes",
        "total_bytes",
        "java",
        "series",
        "rate_per_hour",
        "took_s",
    )
)


class Placeholders:
    """Numbers the values of each kind in the order in which they are seen. `keys`: those that the
    hub issued before, whose public ids may be seen without them.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._numbers: dict[str, dict[str, int]] = {}
        self._public_ids: dict[str, str] = {}
        self._measured = _MEASURED
        for key in keys:
            self._know(key)

    def replaced(self, answer: dict[str, Any], measured: Iterable[str] = ()) -> dict[str, Any]:
        """Return the status, headers and body of an answer. `measured`: more fields of figures."""
        self._know(repr(answer))
        self._measured = _MEASURED.union(measured)
        return {name: self._value(value) for name, value in answer.items()}

    def _know(self, text: str) -> None:
        for key in _KEY.findall(text):
            public_id = key.split("_")[1]
            if public_id not in self._public_ids:
                number = len(self._public_ids) + 1
                self._public_ids[public_id] = f"<public id {number}>"

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict) and "pid" in value:  # a process of the hub
            return {**_shape(value), "kind": value["kind"]}
        if isinstance(value, dict):
            return {self._text(name): self._field(name, one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._value(one) for one in value]
        return self._text(value) if isinstance(value, str) else value

    def _field(self, name: str, value: Any) -> Any:
        if name == "health" and isinstance(value, dict) and "components" in value:
            return _shape(value)
        return _measured(value) if name in self._measured else self._value(value)

    def _text(self, text: str) -> str:
        text = _ALL.sub(self._placeholder, text)
        for public_id, placeholder in self._public_ids.items():
            text = text.replace(public_id, placeholder)
        return text

    def _placeholder(self, found: re.Match[str]) -> str:
        kind, text = str(found.lastgroup), found[0]
        if kind in ("date", "token"):  # of whole seconds: two may be equal by chance
            return f"<{kind}>"
        if kind != "time":
            return f"<{kind} {self._number(kind, text)}>"
        return text if _is_far(text) else self._time(text)

    def _time(self, text: str) -> str:
        """Return a placeholder of the time's form. Times of whole seconds may be equal by chance:
        they get no number.
        """
        form = re.sub(r"\d", "0", text[19:])
        fraction = re.sub(r"\D", "", text[19:26])
        number = f" {self._number('time', text)}" if fraction.strip("0") else ""
        return f"<time{number} {form}>"

    def _number(self, kind: str, text: str) -> int:
        known = self._numbers.setdefault(kind, {})
        return known.setdefault(text, len(known) + 1)


def _is_far(text: str) -> bool:
    if text.startswith(_EXAMPLE):
        return True
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return True
    return abs(moment - datetime.now(UTC)) > _NEAR


def _measured(value: Any) -> Any:
    """Return only the type of a measured value."""
    if isinstance(value, dict):
        return {name: _measured(one) for name, one in value.items()}
    return None if value is None else f"<{type(value).__name__}>"


def _shape(value: Any) -> Any:
    """Return only the fields and names: the values of the hub's health change with time."""
    if isinstance(value, dict):
        return {name: one if name == "name" else _shape(one) for name, one in value.items()}
    return [_shape(one) for one in value] if isinstance(value, list) else "<any>"
