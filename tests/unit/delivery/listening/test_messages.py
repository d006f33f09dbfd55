"""Messages of clients: which are accepted, and which are refused with which field."""

import json
from typing import Any

import pytest

from delivery.listening import messages
from eventhub.base import errors, limits
from eventhub.eventlog.read import AtTime
from eventhub.eventlog.stored import Cursor

SEGMENT = "5A4F0C0E-0000-4000-8000-000000000001"


def parsed(**fields: Any) -> Any:
    return messages.parse_message(json.dumps(fields))


def listen(**fields: Any) -> Any:
    return parsed(op="listen", listener="a", stream="orders", **fields)


@pytest.mark.parametrize(
    ("start", "meant"),
    [
        ({}, "now"),
        ({"from": "now"}, "now"),
        ({"from": "oldest"}, "oldest"),
        (
            {"from": {"segment": SEGMENT, "sequence": 0}},
            Cursor(SEGMENT.lower(), 0),
        ),
        ({"from": f"{SEGMENT}:7"}, Cursor(SEGMENT.lower(), 7)),
        ({"from": "boot"}, "boot"),
        ({"from": "1970-01-01T01:00:01+01:00"}, AtTime(1_000_000)),
        ({"from": {"time": "1970-01-01T00:00:00.000001Z"}}, AtTime(1)),
    ],
)
def test_a_listener_starts_now_at_the_oldest_or_after_a_cursor(
    start: dict[str, Any], meant: Any
) -> None:
    assert messages.request_of(listen(**start)).start == meant


@pytest.mark.parametrize(
    ("mask", "meant"),
    [(None, None), (4, 4), ("4", 4), (str(2**64 - 1), 2**64 - 1), (["disk"], ["disk"])],
)
def test_a_mask_is_bits_or_names(mask: Any, meant: Any) -> None:
    assert messages.request_of(listen(mask=mask)).mask == meant


@pytest.mark.parametrize("mask", [0, -1, 2**64, "", "x", "٤", "-1", [], "1" * 21])
def test_an_invalid_mask_is_refused(mask: Any) -> None:
    with pytest.raises(errors.InvalidMask) as caught:
        messages.request_of(listen(mask=mask))
    assert caught.value.field == "mask"


@pytest.mark.parametrize(
    ("message", "error", "field"),
    [
        ({"op": "dance"}, errors.UnknownOperation, "op"),
        ({}, errors.MissingField, "op"),
        ({"op": "listen", "listener": "a"}, errors.MissingField, "stream"),
        ({"op": "listen", "listener": "", "stream": "s"}, errors.InvalidField, "listener"),
        ({"op": "listen", "listener": "a" * 65, "stream": "s"}, errors.FieldTooLong, "listener"),
        ({"op": "ack", "listener": "a", "sequence": -1}, errors.InvalidField, "sequence"),
        ({"op": "ack", "listener": "a", "sequence": 2**63}, errors.NumberOutOfRange, "sequence"),
        ({"op": "ack", "listener": "a", "sequence": 1.5}, errors.InvalidField, "sequence"),
        ({"op": "stop", "listener": "a", "colour": 1}, errors.UnknownField, "colour"),
        ({"op": "connect", "session": ""}, errors.InvalidField, "session"),
        ({"op": "credit", "session": "s", "events": 0}, errors.InvalidField, "events"),
        ({"op": "emit", "stream": "s"}, errors.MissingField, "events"),
        ({"op": "resend", "listener": "a", "from": 0}, errors.InvalidField, "from"),
        ({"op": "resend", "listener": "a", "sequences": []}, errors.InvalidField, "sequences"),
    ],
)
def test_an_error_names_the_field(
    message: dict[str, Any], error: type[errors.EventHubError], field: str
) -> None:
    with pytest.raises(errors.EventHubError) as caught:
        parsed(**message)
    assert (type(caught.value), caught.value.field) == (error, field)


@pytest.mark.parametrize(
    ("fields", "error", "field"),
    [
        ({"listener": "a", "sequence": 1}, None, None),
        ({"session": "s", "stream": "o", "sequence": 1, "id": "1"}, None, None),
        ({"session": "s", "stream": "o", "sequences": [3, 5]}, None, None),
        ({"session": "s", "stream": "o", "sequence": 1, "sequences": [3]}, None, None),
        ({"sequence": 1}, errors.MissingField, "listener"),
        ({"listener": "a"}, errors.MissingField, "sequence"),
        ({"listener": "a", "sequence": 1, "id": "1"}, errors.UnknownField, "id"),
        ({"listener": "a", "sequence": 1, "sequences": [2]}, errors.UnknownField, "sequences"),
        ({"session": "s", "sequence": 1}, errors.MissingField, "stream"),
        ({"session": "s", "stream": "o"}, errors.MissingField, "sequence"),
        (
            {"session": "s", "stream": "o", "sequence": 1, "listener": "a"},
            errors.UnknownField,
            "listener",
        ),
    ],
)
def test_an_ack_has_one_of_two_forms(
    fields: dict[str, Any], error: type[errors.EventHubError] | None, field: str | None
) -> None:
    message = parsed(op="ack", **fields)
    if error is None:
        message.require_complete()
        return
    with pytest.raises(error) as caught:
        message.require_complete()
    assert caught.value.field == field


@pytest.mark.parametrize(
    "start",
    [
        "yesterday",
        {"segment": "no", "sequence": 1},
        {"segment": SEGMENT},
        {"sequence": 1},
        {"segment": SEGMENT, "sequence": 1, "time": "1970-01-01T00:00:01Z"},
        {"time": "1970-01-01T00:00:01"},
        {},
        "1970-01-01T00:00:01",
        f"{SEGMENT}:{2**63}",
        f"{SEGMENT}:-1",
        7,
        [],
    ],
)
def test_an_invalid_start_is_refused(start: Any) -> None:
    with pytest.raises(errors.BadRequest) as caught:
        messages.request_of(listen(**{"from": start}))
    assert (caught.value.field or "").startswith("from")


@pytest.mark.parametrize("field", ["body", "body_base64"])
def test_the_body_is_not_filterable(field: str) -> None:
    with pytest.raises(errors.BodyNotFilterable) as caught:
        messages.request_of(listen(**{field: "x"}))
    assert caught.value.field == field


@pytest.mark.parametrize("window", [0, limits.WINDOW_EVENTS_MAX + 1, "2", True])
def test_a_window_has_bounds(window: Any) -> None:
    with pytest.raises(errors.BadRequest) as caught:
        listen(window=window)
    assert caught.value.field == "window"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", errors.MalformedJson),
        (b"\xff", errors.MalformedJson),
        (b'{"op":"ping","id":"\xff"}', errors.InvalidUtf8),
        ("[]", errors.InvalidField),
        ("{" + " " * limits.MESSAGE_BYTES_MAX, errors.BodyTooLarge),
        ('{"op":"listen","attributes":' + "[" * 20_000, errors.TooDeep),
    ],
)
def test_an_invalid_message_is_refused(
    text: str | bytes, error: type[errors.EventHubError]
) -> None:
    with pytest.raises(errors.EventHubError) as caught:
        messages.parse_message(text)
    assert type(caught.value) is error
