"""Reports: the fields of a matched event that a registration requests, under their own or other
names, and constants (OIF-04, OIF-06). Plain module.

    ["user", "env.host"]
    {"who": "user", "host": "env.host", "from": {"const": "hub 1"}}

A path is written as in filters: `a.b` in the attributes, `@type` in the envelope, `env.trace` in
the environment; in back quotes it is always a path into the attributes. The client receives a
derived event: it keeps the identity of the event, has exactly these attributes, and nothing else.

Source: OIF, "Architecture" (OIF-04); requirements, decisions 27 and 30.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from eventhub.base import limits
from eventhub.base.errors import EventHubError, FieldTooLong, InvalidField, NumberOutOfRange
from eventhub.event.envelope import Event
from registrations.filters.ast import Const, Path, TextPosition
from registrations.filters.predicate import path_of
from registrations.filters.values import MISSING, value_of

_START = TextPosition(1, 1)


class ReportTemplate(NamedTuple):
    """The attributes of a derived event: their names and sources."""

    fields: tuple[tuple[str, Path | Const], ...]

    def apply(self, event: Event) -> dict[str, Any]:
        """Return the attributes of the derived event, without those that the event lacks."""
        found: dict[str, Any] = {}
        for name, source in self.fields:
            value = source.value if isinstance(source, Const) else value_of(source, event)
            if value is not MISSING:
                found[name] = list(value) if isinstance(value, tuple) else value
        return found

    def derive(self, event: Event) -> Event:
        """Return the event to send instead. It keeps `id`, `source`, `node`, `domain`, `type`,
        `time` and the channels, which identify the event or were set by the log.
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


def parse_report(given: Any) -> ReportTemplate:
    """Parse a report from JSON. Raises InvalidField, FieldTooLong and NumberOutOfRange with the
    field, such as `report.1` or `report.host`.
    """
    if isinstance(given, list | dict) and len(given) > limits.REPORT_FIELDS_MAX:
        message = f"A report has at most {limits.REPORT_FIELDS_MAX} fields; omit some."
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
        message = f"A report has at most {limits.REPORT_BYTES_MAX:,} bytes; omit some fields."
        raise FieldTooLong(message, field="report", bytes_max=limits.REPORT_BYTES_MAX)
    return ReportTemplate(tuple(found.items()))


@lru_cache(maxsize=limits.REPORTS_CACHED_MAX)
def stored_report(text: str) -> ReportTemplate:
    """Parse a stored report: the JSON that `parse_report` accepted."""
    return parse_report(orjson.loads(text))


def merged_report(reports: Iterable[ReportTemplate | None]) -> ReportTemplate | None:
    """Merge the reports of the registrations that share one notification (decision 30), in
    ascending order: the whole event (None) if one of them requests it, else all fields. Of two
    fields with one name the first wins.
    """
    found: dict[str, Path | Const] = {}
    for report in reports:
        if report is None:
            return None
        for name, source in report.fields:
            found.setdefault(name, source)
    return ReportTemplate(tuple(found.items()))


def _named(item: Any, field: str) -> tuple[str, Path | Const]:
    """Return a path of a list under its own name."""
    path = _path(item, field)
    return (path.name if _is_quoted(item) else item), path


def _is_quoted(text: str) -> bool:
    return len(text) > 2 and text[0] == text[-1] == "`"


def _source(item: Any, field: str) -> Path | Const:
    return _const(item, field) if isinstance(item, dict) else _path(item, field)


def _path(item: Any, field: str) -> Path:
    if not isinstance(item, str) or not item:
        message = 'A report field is a path, as in "env.host", or {"const": …} under a name.'
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
