"""Strict JSON: what is refused, and where."""

import json
import time

import pytest

from eventhub.base import errors, limits
from eventhub.base.strict_json import parse_object


def test_an_object_is_read_as_it_is() -> None:
    body = b'{"a": [1, -9223372036854775808, 18446744073709551615, 1.5], "b": {"c": "\\u00e9[{"}}'
    assert parse_object(body) == json.loads(body)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", errors.MalformedJson),
        (b'{"a": 1', errors.MalformedJson),
        (b"{'a': 1}", errors.MalformedJson),
        (b'{"a": 01}', errors.MalformedJson),
        (b'{"a": "\\ud83d"}', errors.MalformedJson),
        (b'{"a": "\n"}', errors.MalformedJson),
        (b'{"a": 1} x', errors.MalformedJson),
        (b"\xff", errors.InvalidUtf8),
        (b'{"a": NaN}', errors.NumberOutOfRange),
        (b'{"a": -Infinity}', errors.NumberOutOfRange),
        (b'{"a": 1e999}', errors.NumberOutOfRange),
        (b'{"a": 18446744073709551616}', errors.NumberOutOfRange),
        (b'{"a": -9223372036854775809}', errors.NumberOutOfRange),
        (b'{"a": 1, "a": 2}', errors.InvalidField),
        (b"[]", errors.InvalidField),
        (b"null", errors.InvalidField),
        (b"[" * 33 + b"]" * 33, errors.TooDeep),
        (b"[" * 100_000, errors.TooDeep),
        (b"[" + b"[]," * 40_000 + b"[" * 33, errors.BodyTooLarge),
        (b"[" + b"[]," * 1_000 + b"[" * 33, errors.TooDeep),
        (b"[" + b"[]," * 80_000 + b"[]]", errors.BodyTooLarge),
        (b"[" + b"1," * 60_000 + b"1]", errors.BodyTooLarge),
    ],
)
def test_everything_else_is_refused(body: bytes, error: type[errors.EventHubError]) -> None:
    with pytest.raises(error) as caught:
        parse_object(body)
    assert type(caught.value) is error
    json.dumps(caught.value.problem()).encode()


def test_the_error_of_a_malformed_body_has_line_and_column() -> None:
    with pytest.raises(errors.MalformedJson) as caught:
        parse_object(b'{\n  "a": 1,\n}')
    assert caught.value.details["line"] >= 2


def test_the_deepest_allowed_is_read_and_brackets_in_strings_do_not_count() -> None:
    depth = limits.JSON_DEPTH_MAX - 1
    assert parse_object(b'{"a": ' + b"[" * depth + b"]" * depth + b"}")
    assert parse_object(b'{"a": "' + b"[" * 1000 + b'"}')
    assert parse_object(b'{"a": "' + b"[,{" * 30_000 + b'"}')


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": "' + b'\\"' * 120_000,
        b'"' * 250_000,
        b"[" * 250_000,
        b'{"a": ' + b"9" * 250_000 + b"}",
        b'{"' + b'":1,"'.join(b"%d" % number for number in range(30_000)) + b'":1,"0":2}',
    ],
)
def test_no_body_takes_long_to_refuse(body: bytes) -> None:
    started = time.process_time()  # of this process: others may be busy
    with pytest.raises(errors.EventHubError):
        parse_object(body)
    assert time.process_time() - started < 1.0
