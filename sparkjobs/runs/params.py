"""The parameters of jobs: their validation, and the lookup of the objects they name. Django module.

A run stores validated parameters: times as `since_us` and `until_us`, and the ids of zones and
streams in addition to their names.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from eventhub.access import selectors
from eventhub.access.names import valid_name
from eventhub.api.announcements import raw_connection
from eventhub.api.fields import FlagField, MomentField, NameField, OneOfField, TextField, WholeField
from eventhub.api.pagination import micros
from eventhub.api.problems import validation_error
from eventhub.api.serializers import Serializer
from eventhub.base import limits
from eventhub.base.errors import EventHubError, InvalidField, MissingField
from eventhub.base.strict_json import parse_json
from eventhub.event.json_codec import time_text
from eventhub.eventlog import streams
from eventhub.streams.serializers import PolicySerializer
from registrations.filter_source import FilterSource
from registrations.filters.languages import LANGUAGES
from registrations.pattern_groups.definition import LANGUAGES as PATTERN_LANGUAGES
from registrations.pattern_groups.definition import READY, PatternDefinition, parsed
from registrations.pattern_groups.engine import HubEngine, HubPattern
from sparkjobs.runs.jobs import AUDIT, BACKTEST, MATCH_INDEX, RETENTION, job_named

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_ENGINES = ("auto", "local", "spark")


class _MicrosField(MomentField):
    """A time, stored as microseconds since 1970."""

    def to_internal_value(self, value: Any) -> Any:
        return micros(super().to_internal_value(value))


class _NamesField(serializers.ListField):
    """Names of streams; a single one may be given as a text."""

    def __init__(self, **options: Any) -> None:
        most = limits.JOB_STREAMS_MAX
        super().__init__(child=NameField(), min_length=1, max_length=most, **options)

    def to_internal_value(self, data: Any) -> list[str]:
        return list(super().to_internal_value([data] if isinstance(data, str) else data))


class _Params(Serializer):
    def validate(self, found: dict[str, Any]) -> dict[str, Any]:
        """Add the ids of the named zone and streams."""
        if "zone" in found:
            found["zone_id"] = selectors.find_zone(name=found["zone"]).pk
        elif "streams" in found:
            raise MissingField("Stream names belong to a zone; give the `zone`.", field="zone")
        if "streams" in found:
            found["stream_ids"] = [_stream_id(found, name, "streams") for name in found["streams"]]
        if "stream" in found:
            found["stream_id"] = _stream_id(found, found["stream"], "stream")
            found["stream_ids"] = [found["stream_id"]]
        if found.get("since_us", 0) >= found.get("until_us", 1 << 63):
            raise InvalidField("This must be after `since`.", field="until")
        return found


class AuditParams(_Params):
    zone = NameField(required=False)
    streams = _NamesField(required=False)
    since = _MicrosField(source="since_us", required=False)
    until = _MicrosField(source="until_us", required=False)


class BacktestParams(_Params):
    """A `filter` on a `stream`, or a `pattern` over `streams`."""

    zone = NameField()
    stream = NameField(required=False)
    streams = _NamesField(required=False)
    language = OneOfField(choices=sorted({*LANGUAGES, *PATTERN_LANGUAGES}), required=False)
    filter = serializers.JSONField(required=False)
    pattern = TextField(required=False)
    once = FlagField(required=False)
    since = _MicrosField(source="since_us", required=False)
    until = _MicrosField(source="until_us", required=False)
    sample_max = WholeField(
        min_value=0,
        max_value=limits.BACKTEST_SAMPLE_MAX,
        default=limits.BACKTEST_SAMPLE_DEFAULT,
    )
    engine = OneOfField(choices=_ENGINES, required=False)

    def validate(self, found: dict[str, Any]) -> dict[str, Any]:
        if "pattern" in found:
            _require(found, ("streams", "pattern"), ("filter", "stream"), PATTERN_LANGUAGES)
            _check_streams(found["streams"])
        else:
            _require(found, ("stream", "filter"), ("once", "streams"), LANGUAGES)
        super().validate(found)
        if "pattern" in found:
            found.setdefault("language", READY)
            _check_pattern(found)
        else:
            found.setdefault("language", "predicate")
            with _at("filter"):
                FilterSource(found["language"], found["filter"]).read()
        return found


def _require(
    found: Mapping[str, Any],
    needed: Sequence[str],
    others: Sequence[str],
    languages: Collection[str],
) -> None:
    """Check the parameters of a back-test of a filter or of a pattern. Raises MissingField,
    InvalidField.
    """
    for name in needed:
        if name not in found:
            message = "Give a `filter` and its `stream`, or a `pattern` and its `streams`."
            raise MissingField(message, field=name)
    for name in others:
        if name in found:
            names = " and ".join(f"`{one}`" for one in needed)
            raise InvalidField(f"Omit this; it does not belong to {names}.", field=name)
    if found.get("language", next(iter(languages))) not in languages:
        message = f"This must be one of {', '.join(sorted(languages))}."
        raise InvalidField(message, field="language")


def _check_streams(names: list[str]) -> None:
    if len(names) > limits.PATTERN_GROUP_STREAMS_MAX:
        message = f"A pattern reads at most {limits.PATTERN_GROUP_STREAMS_MAX} streams."
        raise InvalidField(message, field="streams")
    for at, name in enumerate(names):
        if name in names[:at]:
            raise InvalidField(f"{name} is named twice.", field=f"streams.{at}")


def _check_pattern(found: Mapping[str, Any]) -> None:
    """Raise the errors of a pattern's text."""
    definition = PatternDefinition(found["language"], found["pattern"], found.get("once", False))
    try:
        HubEngine().add(HubPattern(1, parsed(definition).tree))
    except EventHubError as error:
        error.field = "once" if error.field == "once" else "pattern"
        raise


class MatchIndexParams(_Params):
    zone = NameField()
    stream = NameField()
    engine = OneOfField(choices=_ENGINES, default="auto")


class PlanPolicySerializer(PolicySerializer):
    """A policy that a plan uses instead of a stream's own."""

    class Meta(PolicySerializer.Meta):
        fields = ("retain_events", "retain_bytes", "retain_age_s", "on_lag", "hold", "archive")


class RetentionParams(_Params):
    zone = NameField(required=False)
    policies = serializers.JSONField(required=False)

    def validate(self, found: dict[str, Any]) -> dict[str, Any]:
        """Validate the proposed policies, by the name of a stream of the zone."""
        super().validate(found)
        policies = found.get("policies", {})
        if "policies" in found and "zone" not in found:
            raise MissingField("Policies name streams of a zone; give the `zone`.", field="zone")
        if not isinstance(policies, dict) or len(policies) > limits.PLAN_POLICIES_MAX:
            message = f"This must be an object of at most {limits.PLAN_POLICIES_MAX:,} policies."
            raise InvalidField(message, field="policies")
        for name, policy in policies.items():
            valid_name(name, field="policies")
            at = f"policies.{name}"
            _stream_id(found, name, at)
            with _at(at):
                policies[name] = _read(PlanPolicySerializer, policy)
        return found


_PARAMS: dict[str, type[Serializer]] = {
    AUDIT.name: AuditParams,
    BACKTEST.name: BacktestParams,
    MATCH_INDEX.name: MatchIndexParams,
    RETENTION.name: RetentionParams,
}


def parse_value(job: str, name: str, text: str) -> Any:
    """Parse the TEXT of a command's NAME=TEXT by the parameter's type: names separated by commas, a
    whole number, true or false, a JSON object where one is allowed; any other text is returned as
    it is. Raises UnknownJob, and for JSON the errors of parse_json, with the field.
    """
    field = _PARAMS[job_named(job).name]().fields.get(name)
    if isinstance(field, _NamesField):
        return text.split(",")
    if isinstance(field, WholeField):
        return int(text) if _WHOLE.fullmatch(text) else text
    if isinstance(field, FlagField):
        return {"true": True, "false": False}.get(text, text)
    if isinstance(field, serializers.JSONField) and text.lstrip().startswith("{"):
        return parse_json_option(text, field=f"params.{name}")  # no filter text starts with a brace
    return text


def parse_json_option(text: str, *, field: str) -> Any:
    """Parse JSON from the command line. Raises the errors of parse_json, with the field."""
    with _at(field):
        return parse_json(text.encode(errors="surrogateescape"))


def check_params(job: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Validate parameters and return them as a run stores them. Raises UnknownJob, NotFound for a
    zone, UnknownStream, and errors of fields and filter languages; all with the field.
    """
    serializer = _PARAMS[job_named(job).name]
    with _at("params"):
        return _read(serializer, given)


def rendered_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's stored parameters as they were requested."""
    own = {name: value for name, value in params.items() if not name.endswith(("_id", "_ids"))}
    times = {f"{name}_us": name for name in ("since", "until")}
    return {
        times.get(name, name): time_text(value) if name in times else value
        for name, value in own.items()
    }


def _read(serializer: type[Serializer], given: Any) -> dict[str, Any]:
    found = serializer(data=given)
    try:
        found.is_valid(raise_exception=True)
    except ValidationError as error:
        raise validation_error(error) from error
    return dict(found.validated_data)


def _stream_id(found: Mapping[str, Any], name: str, field: str) -> int:
    with _at(field):
        return streams.get_stream(raw_connection(), found["zone_id"], name).id


@contextmanager
def _at(field: str) -> Iterator[None]:
    """Add a prefix to the field of errors raised in the block."""
    try:
        yield
    except EventHubError as error:
        error.field = f"{field}.{error.field}" if error.field else field
        raise
