"""Error messages say what is wrong, where, and what to do."""

from typing import Any

import pytest
from eventhub_client.commands.exits import Failed, run
from eventhub_client.errors import refusal
from rest_framework.exceptions import ValidationError

from eventhub.api import fields
from eventhub.api.problems import as_error
from eventhub.base import limits
from eventhub.base.errors import BodyTooLarge, EventHubError, FieldTooLong
from eventhub.base.strict_json import parse_json
from registrations.bulk.lines import read_line
from registrations.endpoints.addresses import CallbackAddresses
from registrations.filter_source import parse_filter
from registrations.filters.report import parse_report
from registrations.requests import parse_one

DEEP = b"[" * (limits.JSON_DEPTH_MAX + 1)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"filter": {"detail": {"b": {"a": [1], "a": [2]}}}}', "filter.detail.b.a"),
        (b'{"attributes": {"streams": 1, "streams": 2}}', "attributes.streams"),
        (b'[{"x": 1}, {"y": [0, {"z": 1, "z": true}]}]', "1.y.1.z"),
        (b'{"a": {"b": 1, "b": 2}, "a": 3}', "a"),  # the first `a` was replaced with its `b`
        (b'{"a": 1, "filter": {"x": ' + DEEP, "filter"),
        (DEEP, None),
    ],
)
def test_json_that_is_refused_is_named_by_its_path(body: bytes, field: str | None) -> None:
    with pytest.raises(EventHubError) as caught:
        parse_json(body)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        (fields.NameField(), "", "at least one character"),
        (fields.NameField(), None, "cannot be null"),
        (fields.NameField(), "a" * 201, "at most 200 characters"),
        (fields.FlagField(), "yes", "true or false"),
        (fields.WholeField(min_value=1), 0, "at least 1"),
        (fields.WholeField(), "1", "an integer"),
        (fields.OneOfField(choices=["age", "size"]), "x", "one of age, size"),
        (fields.MomentField(), "now", "a time such as"),
    ],
)
def test_messages_of_fields_have_the_style_of_the_rest(field: Any, value: Any, text: str) -> None:
    with pytest.raises((EventHubError, ValidationError)) as caught:
        field.run_validation(value)
    message = as_error(caught.value).message
    assert text in message
    assert "field" not in message.lower()


def test_a_value_that_is_too_long_is_refused_with_its_limit() -> None:
    assert "at most 200 characters" in FieldTooLong(field="key", chars_max=200).message
    assert "`body`" in FieldTooLong(field="attributes", count_max=8).message  # of an event
    many = {"streams": [f"s{n}" for n in range(limits.STREAMS_PER_REGISTRATION_MAX + 1)]}
    for read, given, said in (
        (parse_report, ["x" * 1_000 + str(n) for n in range(9)], "8,192 bytes"),
        (parse_report, [f"u{n}" for n in range(limits.REPORT_FIELDS_MAX + 1)], "64 fields"),
        (lambda body: parse_one(body, CallbackAddresses()), many, "64 streams"),
    ):
        with pytest.raises(FieldTooLong) as caught:
            read(given)
        assert said in caught.value.message
        assert "`body`" not in caught.value.message
    assert "events" not in BodyTooLarge().message


def test_lines_of_a_bulk_request_are_refused_as_lines() -> None:
    addresses = CallbackAddresses()
    array, long = (read_line(1, text, addresses).operation for text in (b"[1]", None))
    assert isinstance(array, EventHubError)
    assert isinstance(long, EventHubError)
    assert "line" in array.message
    assert (long.code, "131,072 bytes" in long.message) == ("body_too_large", True)


def test_a_filter_together_with_pairs_is_refused_at_the_wrong_field() -> None:
    for language, field in (("pairs", "filter"), (None, "language")):
        with pytest.raises(EventHubError) as caught:
            parse_filter({"language": language, "filter": {"attributes": {}}})
        assert caught.value.field == field
        assert ("needs a `language`" in caught.value.message) == (language is None)


def test_the_command_line_prints_line_and_column() -> None:
    problem: dict[str, Any] = {"status": 400, "code": "filter_syntax", "detail": "Not closed.",
               "position": {"field": "filter"}, "line": 1, "column": 4}  # fmt: skip

    async def command() -> None:
        raise refusal(problem)

    with pytest.raises(Failed) as caught:
        run(command())
    message = "filter_syntax: Not closed. (field filter, line 1, column 4)"
    assert caught.value.message == message
