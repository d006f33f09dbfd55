"""Reports: the derived event, and the errors of invalid reports."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.event.envelope import Event
from eventhub.event.identity import EventId
from registrations.filters.report import ReportTemplate, merged_report, parse_report, stored_report
from tests.unit.eventhub.event.strategies import events

EVENT = Event(
    "shop",
    "order",
    {"user": "Joe", "cause": {"type": "error"}, "tags": ["a", "b"], "none": None, "env.x": "own"},
    id=EventId("till", 5, 7, 3),
    source="till",
    name="an order",
    body=b"{}",
    content_type="application/json",
    node="till-3",
    application=("billing",),
    environment={"host": "h1"},
    mask=7,
    priority=5,
    time_us=1_000_000,
    key="k",
    audience=("ops",),
)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (["user", "env.host"], {"user": "Joe", "env.host": "h1"}),
        ({"who": "user", "host": "env.host"}, {"who": "Joe", "host": "h1"}),
        (["cause.type", "cause"], {"cause.type": "error", "cause": {"type": "error"}}),
        (["@type", "@application"], {"@type": "order", "@application": ["billing"]}),
        (["@priority", "@time"], {"@priority": 5, "@time": "1970-01-01T00:00:01.000000Z"}),
        (["missing", "env.missing", "@key", "none", "tags"], {"@key": "k", "none": None,
                                                             "tags": ["a", "b"]}),
        (["`env.x`"], {"env.x": "own"}),
        ({"hub": {"const": 1}, "none": {"const": None}}, {"hub": 1, "none": None}),
        ([], {}),
        ({}, {}),
    ],
)  # fmt: skip
def test_a_report_selects_the_attributes(report: Any, expected: dict[str, Any]) -> None:
    assert parse_report(report).apply(EVENT) == expected
    assert stored_report(orjson.dumps(report).decode()).apply(EVENT) == expected


@given(events())
def test_the_derived_event_keeps_the_identity_and_nothing_else(event: Event) -> None:
    derived = parse_report(["user"]).derive(event)
    identity = ("domain", "type", "id", "source", "node", "time_us", "mask")
    assert [getattr(derived, name) for name in identity] == [
        getattr(event, name) for name in identity
    ]
    user = {"user": event.attributes["user"]} if "user" in event.attributes else {}
    assert derived == Event(attributes=user, **{name: getattr(event, name) for name in identity})


@pytest.mark.parametrize(
    ("report", "code", "field"),
    [
        ("user", "invalid_field", "report"),
        (7, "invalid_field", "report"),
        (None, "invalid_field", "report"),
        (["user", 7], "invalid_field", "report.1"),
        (["user", ""], "invalid_field", "report.1"),
        (["user", {"path": "user"}], "invalid_field", "report.1"),
        ({"who": None}, "invalid_field", "report.who"),
        ({"who": "@nobody"}, "invalid_field", "report.who"),
        (["@body"], "invalid_field", "report.0"),
        ({"who": {"const": {}}}, "invalid_field", "report.who"),
        ({"who": {"const": [1]}}, "invalid_field", "report.who"),
        ({"who": {"const": 1, "more": 2}}, "invalid_field", "report.who"),
        ({"who": {"const": 2**64}}, "number_out_of_range", "report.who"),
        (["u" * (limits.PATH_CHARS_MAX + 1)], "field_too_long", "report.0"),
        ([f"u{n}" for n in range(limits.REPORT_FIELDS_MAX + 1)], "field_too_long", "report"),
        (["u" * 1_000 + str(n) for n in range(9)], "field_too_long", "report"),
    ],
)
def test_an_invalid_report_is_refused_with_its_field(report: Any, code: str, field: str) -> None:
    with pytest.raises(EventHubError) as caught:
        parse_report(report)
    assert (caught.value.code, caught.value.status, caught.value.field) == (code, 400, field)


def test_a_constant_in_a_list_has_no_name() -> None:
    with pytest.raises(EventHubError) as caught:
        parse_report([{"const": 1}])
    assert caught.value.field == "report.0"


USER, HOST = parse_report(["user"]), parse_report({"host": "env.host", "user": {"const": 0}})


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([USER], {"user": "Joe"}),
        ([USER, USER], {"user": "Joe"}),
        ([USER, HOST], {"user": "Joe", "host": "h1"}),
        ([HOST, USER], {"user": 0, "host": "h1"}),
        ([USER, None], None),
        ([None], None),
    ],
)
def test_one_notification_has_the_fields_of_all_its_registrations(
    reports: list[ReportTemplate | None], expected: dict[str, Any] | None
) -> None:
    found = merged_report(reports)
    assert (None if found is None else found.apply(EVENT)) == expected


@given(st.lists(st.sampled_from([USER, HOST, parse_report(["tags", "cause.type"])]), min_size=1))
def test_merged_reports_have_all_fields(reports: list[ReportTemplate]) -> None:
    found = merged_report(reports)
    assert found is not None
    assert set(found.apply(EVENT)) == {name for one in reports for name in one.apply(EVENT)}
