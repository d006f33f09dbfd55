"""What a registration has told of an event that matched: fields of it, under their own names or
others, and constants (OIF-04, OIF-06). Plain module.

    ["user", "env.host"]
    {"who": "user", "host": "env.host", "from": {"const": "hub 1"}}

A path is written as in the languages: `a.b` of the attributes, `@type` of the envelope, `env.trace`
of the environment; in back quotes it is a path into the attributes whatever it looks like. What is
told is a derived event: what identifies the event stays, its attributes are exactly these, and
nothing else of it is sent.

Source: OIF, "Architecture" (OIF-04); requirements, decisions 27 and 30.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from eventhub.base import limits
from eventhub.base.errors import EventHubError, FieldTooLong, InvalidField, NumberOutOfRange
from eventhub.event.envelope import Event
from registrations.filters.ast import Const, Path, Place
from registrations.filters.predicate import path_of
from registrations.filters.values import MISSING, value_of

_START = Place(1, 1)


class Report(NamedTuple):
    """The attributes of the derived event: their names, and where each comes from."""

    fields: tuple[tuple[str, Path | Const], ...]

    def apply(self, event: Event) -> dict[str, Any]:
        """The attributes of the derived event; without those that the event has nothing for."""
        found: dict[str, Any] = {}
        for name, source in self.fields:
            value = source.value if isinstance(source, Const) else value_of(source, event)
            if value is not MISSING:
                found[name] = list(value) if isinstance(value, tuple) else value
        return found

    def derive(self, event: Event) -> Event:
        """The event that is sent instead: `id`, `source`, `node`, `domain`, `type`, `time` and the
        channels are those of the event, which name it and which the log has given.
        """
        return Event(
            event.domain,
            event.type,
            self.apply(event),
            id=event.id,
            source=event.source,
            node=event.node,
            time_us=event.time_us,
            mask=event.mask,
        )


def parse_report(given: Any) -> Report:
    """A report as it is written in JSON. Raises InvalidField, FieldTooLong and NumberOutOfRange at
    the field, such as `report.1` or `report.host`.
    """
    if isinstance(given, list | dict) and len(given) > limits.REPORT_FIELDS_MAX:
        message = f"A report has at most {limits.REPORT_FIELDS_MAX} fields; leave some out."
        raise FieldTooLong(message, field="report", fields_max=limits.REPORT_FIELDS_MAX)
    found: dict[str, Path | Const]
    if isinstance(given, list):
        found = dict(_named(item, f"report.{at}") for at, item in enumerate(given))
    elif isinstance(given, dict):
        found = {name: _source(item, f"report.{name[:100]}") for name, item in given.items()}
    else:
        message = 'A report is a list of paths, as in ["user", "env.host"], or an object of names.'
        raise InvalidField(message, field="report")
    if len(orjson.dumps(given)) > limits.REPORT_BYTES_MAX:
        message = f"A report has at most {limits.REPORT_BYTES_MAX:,} bytes; leave some of it out."
        raise FieldTooLong(message, field="report", bytes_max=limits.REPORT_BYTES_MAX)
    return Report(tuple(found.items()))


@lru_cache(maxsize=limits.REPORTS_CACHED_MAX)
def stored_report(text: str) -> Report:
    """A report as it is stored: the JSON that `parse_report` took."""
    return parse_report(orjson.loads(text))


def together(reports: Iterable[Report | None]) -> Report | None:
    """What one notification tells that several registrations get (decision 30), their reports in
    ascending order: the whole event (None) if one of them wants that, else the fields of all. Of
    two of one name the first counts.
    """
    found: dict[str, Path | Const] = {}
    for report in reports:
        if report is None:
            return None
        for name, source in report.fields:
            found.setdefault(name, source)
    return Report(tuple(found.items()))


def _named(item: Any, field: str) -> tuple[str, Path | Const]:
    """A path of a list, under its own name."""
    path = _path(item, field)
    return (path.name if _is_quoted(item) else item), path


def _is_quoted(text: str) -> bool:
    return len(text) > 2 and text[0] == text[-1] == "`"


def _source(item: Any, field: str) -> Path | Const:
    return _const(item, field) if isinstance(item, dict) else _path(item, field)


def _path(item: Any, field: str) -> Path:
    if not isinstance(item, str) or not item:
        message = 'A field of a report is a path, as in "env.host", or {"const": …} under a name.'
        raise InvalidField(message, field=field)
    if len(item) > limits.PATH_CHARS_MAX:
        raise FieldTooLong(field=field, chars_max=limits.PATH_CHARS_MAX)
    if _is_quoted(item):
        return Path(item[1:-1])
    try:
        return path_of(item, _START)
    except EventHubError as error:
        raise InvalidField(error.message, field=field) from error


def _const(item: dict[str, Any], field: str) -> Const:
    if item.keys() != {"const"} or isinstance(item["const"], dict | list):
        message = 'A constant is {"const": …}: a text, a number, true, false or null, under a name.'
        raise InvalidField(message, field=field)
    try:
        orjson.dumps(item["const"])
    except TypeError:
        raise NumberOutOfRange(field=field) from None
    return Const(item["const"])
