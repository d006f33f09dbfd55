"""What may be asked of each job: its parameters are checked here, and what they name is found.

A run keeps them as checked: times as `since_us` and `until_us`, and beside the names of zones and
streams their ids.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from eventhub import limits
from eventhub.access import selectors
from eventhub.access.fields import MomentField, NameField, OneOfField, WholeField
from eventhub.access.names import valid_name
from eventhub.access.problems import validation_error
from eventhub.access.shapes import Serializer
from eventhub.access.strict_json import parse_json
from eventhub.access.system import raw_connection
from eventhub.errors import EventHubError, InvalidField, MissingField, UnknownField
from eventhub.event.json_codec import time_text
from eventhub.eventlog import streams
from eventhub.jobs.kinds import AUDIT, BACKTEST, MATCH_INDEX, RETENTION, kind_of
from eventhub.streams.serializers import PolicySerializer
from registrations.filters import Filter
from registrations.lang.languages import LANGUAGES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_TIMES = ("since", "until")
_ENGINES = ("auto", "local", "spark")
_TRIED = ("retain_events", "retain_bytes", "retain_age_s", "on_lag", "hold", "archive")


class _AnyField(serializers.Field):
    """Any JSON, as it is."""

    def to_internal_value(self, data: Any) -> Any:
        return data


class _NamesField(serializers.ListField):
    """Names of streams; one alone may be given as a text."""

    def __init__(self, **options: Any) -> None:
        most = limits.JOB_STREAMS_MAX
        super().__init__(child=NameField(), min_length=1, max_length=most, **options)

    def to_internal_value(self, data: Any) -> list[str]:
        return list(super().to_internal_value([data] if isinstance(data, str) else data))


class AuditParams(Serializer):
    zone = NameField(required=False)
    streams = _NamesField(required=False)
    since = MomentField(required=False)
    until = MomentField(required=False)


class BacktestParams(Serializer):
    zone = NameField()
    stream = NameField()
    language = OneOfField(choices=sorted(LANGUAGES), default="predicate")
    filter = _AnyField()
    since = MomentField(required=False)
    until = MomentField(required=False)
    shown_max = WholeField(
        min_value=0, max_value=limits.BACKTEST_SHOWN_MAX, default=limits.BACKTEST_SHOWN_DEFAULT
    )


class MatchIndexParams(Serializer):
    zone = NameField()
    stream = NameField()
    engine = OneOfField(choices=_ENGINES, default="auto")


class RetentionParams(Serializer):
    zone = NameField(required=False)
    policies = _AnyField(required=False)


_PARAMS: dict[str, type[Serializer]] = {
    AUDIT.name: AuditParams,
    BACKTEST.name: BacktestParams,
    MATCH_INDEX.name: MatchIndexParams,
    RETENTION.name: RetentionParams,
}


def typed(job: str, name: str, text: str) -> Any:
    """What a command's NAME=TEXT gives, by the kind of the parameter: names between commas, a whole
    number, a JSON object where one may be, else the text as it stands. Raises UnknownJob, and for
    JSON what parse_json raises, with the field.
    """
    field = _PARAMS[kind_of(job).name]().fields.get(name)
    if isinstance(field, _NamesField):
        return text.split(",")
    if isinstance(field, WholeField):
        return int(text) if _WHOLE.fullmatch(text) else text
    if isinstance(field, _AnyField) and text.lstrip().startswith("{"):  # no text of a filter does
        return json_of(text, field=f"params.{name}")
    return text


def json_of(text: str, *, field: str) -> Any:
    """JSON that was typed. Raises what parse_json raises, with the field."""
    try:
        return parse_json(text.encode(errors="surrogateescape"))
    except EventHubError as error:
        error.field = f"{field}.{error.field}" if error.field else field
        raise


def checked(job: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as a run keeps them. Raises UnknownJob, what fields are refused with, NotFound
    for a zone, UnknownStream, and what the language of a filter raises; all with the field.
    """
    try:
        found = _read(_PARAMS[kind_of(job).name], given)
        _name_ids(found)
        _count_times(found)
        if "filter" in found:
            _check_filter(found)
        if "policies" in found:
            found["policies"] = _policies(found)
    except EventHubError as error:
        if error.field and error.field != "job":
            error.field = f"params.{error.field}"
        raise
    return found


def shown(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that a run keeps, as they were asked for."""
    names = {name: value for name, value in params.items() if not name.endswith(("_id", "_ids"))}
    for name in _TIMES:
        at_us = names.pop(f"{name}_us", None)
        if at_us is not None:
            names[name] = time_text(at_us)
    return names


def _read(serializer: type[Serializer], given: Mapping[str, Any]) -> dict[str, Any]:
    found = serializer(data=given)
    try:
        found.is_valid(raise_exception=True)
    except ValidationError as error:
        raise validation_error(error) from error
    return dict(found.validated_data)


def _name_ids(found: dict[str, Any]) -> None:
    if "zone" not in found:
        if found.get("streams"):
            raise MissingField("Streams have names within a zone; give the `zone`.", field="zone")
        return
    found["zone_id"] = selectors.find_zone(name=found["zone"]).pk
    names = [found["stream"]] if "stream" in found else found.get("streams")
    if names is None:
        return
    ids = []
    for name in names:
        try:
            ids.append(streams.get_stream(raw_connection(), found["zone_id"], name).id)
        except EventHubError as error:
            error.field = "stream" if "stream" in found else "streams"
            raise
    found["stream_ids"] = ids
    if "stream" in found:
        found["stream_id"] = ids[0]


def _count_times(found: dict[str, Any]) -> None:
    for name in _TIMES:
        if name in found:
            since_epoch: timedelta = found.pop(name) - _EPOCH
            found[f"{name}_us"] = since_epoch // timedelta(microseconds=1)
    if found.get("since_us", 0) >= found.get("until_us", 1 << 63):
        raise InvalidField("This is after `since`.", field="until")


def _check_filter(found: Mapping[str, Any]) -> None:
    try:
        Filter(found["language"], found["filter"]).read()
    except EventHubError as error:
        error.field = f"filter.{error.field}" if error.field else "filter"
        raise


def _policies(found: Mapping[str, Any]) -> dict[str, Any]:
    """By the name of a stream of the zone, which they replace for the plan."""
    policies = found["policies"]
    if "zone" not in found:
        raise MissingField("Policies are those of a zone's streams; give it.", field="zone")
    if not isinstance(policies, dict) or len(policies) > limits.PLAN_POLICIES_MAX:
        message = f"These are at most {limits.PLAN_POLICIES_MAX:,} policies by stream."
        raise InvalidField(message, field="policies")
    return {name: _policy(found["zone_id"], name, policy) for name, policy in policies.items()}


def _policy(zone_id: int, name: str, policy: Any) -> dict[str, Any]:
    valid_name(name, field="policies")
    try:
        streams.get_stream(raw_connection(), zone_id, name)
        if isinstance(policy, dict):
            for field in policy.keys() - {*_TRIED}:
                raise UnknownField(field=field)
        return _read(PolicySerializer, policy)
    except EventHubError as error:
        error.field = f"policies.{name}.{error.field}" if error.field else f"policies.{name}"
        raise
