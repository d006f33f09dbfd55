"""The compiled encoder writes what Python writes, or leaves an event to Python."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.event.compiled import encoder
from eventhub.event.envelope import DEFAULT_MASK
from eventhub.event.inbound import JSON, event_mask, parse, stored_bytes
from eventhub.event.plain_events import plain_payloads

pytestmark = pytest.mark.skipif(encoder is None, reason="the encoder was not built")

CLIENT = "fördertechnik"
PLAIN = {"domain": "telecom", "type": "link.alarm"}
TEXTS = st.text(max_size=6) | st.sampled_from(["", "$ref", "a.$ref", "\\", '"', "\x7f", "é", "😀"])
NUMBERS = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(-999, 999, allow_nan=False, places=3).map(float)
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=5)
EVENTS = st.fixed_dictionaries(
    {"domain": TEXTS, "type": TEXTS},
    optional={
        **dict.fromkeys(("name", "version", "node", "correlation", "cause"), TEXTS),
        **dict.fromkeys(("traceparent", "summary", "key", "unknown"), TEXTS),
        "attributes": OBJECTS,
        "body": VALUES,
        "mask": st.integers(0, 3),
        "id": TEXTS,
    },
)
LAYOUTS = st.fixed_dictionaries(
    {
        "ensure_ascii": st.booleans(),
        "indent": st.sampled_from([None, 1, "\t"]),
        "separators": st.sampled_from([None, (",", ":"), (" ,", " : ")]),
    }
)


def by_python(body: bytes) -> list[bytes] | None:
    """Return the stored bytes of events in the channel `default`, None for an error."""
    try:
        parsed = parse(body, JSON)
        masks = [event_mask(event) for event in parsed]
        found = [stored_bytes(event, client=CLIENT, mask=DEFAULT_MASK) for event in parsed]
    except EventHubError:
        return None
    given_ids = any(event.id is not None or event.key or event.tombstone for event in parsed)
    return None if given_ids or set(masks) != {DEFAULT_MASK} else found


def agree(body: bytes) -> bool:
    """Return whether the encoder knew the events; it then wrote the same as Python."""
    found = plain_payloads(body, CLIENT)
    if found is not None:
        assert found == by_python(body)
    return found is not None


@given(st.lists(EVENTS, min_size=1, max_size=3) | EVENTS, LAYOUTS)
@example([PLAIN], {})
def test_stored_bytes_equal_those_of_python(events: Any, layout: dict[str, Any]) -> None:
    agree(json.dumps(events, **layout).encode("utf-8", "surrogatepass"))


@given(EVENTS, st.data())
def test_damaged_json_is_left_to_python(event: dict[str, Any], data: st.DataObject) -> None:
    body = bytearray(json.dumps(event, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    at = data.draw(st.integers(0, len(body) - 1))
    body[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    agree(bytes(body))


@pytest.mark.parametrize(
    "text",
    [
        *("0", "7", "-12", "123456789012345678", "0.5", "-0.75", "1.0", "1.50", "0.0", "0.0001"),
        *("999999999999.125", "true", "null", "[]", "{}", '"a b"', '"\\n\\"\\\\\\t\\b\\f\\r"'),
        *('"é😀\x7f"', '[1,{"b":[2,null]}]', '{"a":{"b":{"c":[0.25]}}}'),
    ],
)
def test_plain_values_are_known(text: str) -> None:
    for name in ("body", "attributes"):
        value = text if name == "body" else f'{{ "x" : {text} }}'
        body = f'[ {{"domain":"d", "type" : "t","{name}":{value}}} ,{json.dumps(PLAIN)}]\n'
        assert agree(body.encode())


@pytest.mark.parametrize(
    "text",
    [
        *("01", "-", "1.", ".5", "+1", "-0", "-0.0", "1e5", "1E5", "1.5e5", "0.00001", "NaN"),
        *("1234567890123456789", "1.2345678901234567", "1234567890.123456", "tru", "nullx", "'a'"),
        *('"\\u0041"', '"\\/"', '"\x1f"', '"\\x"', '"', '"a', '"\\', "[1,]", "[1 2]", '{"a":1,}'),
        *('{"a":1,"a":2}', '{"$ref":"https://host/1"}', '{"a.$ref":1}', "[" * 17 + "]" * 17, ""),
    ],
)
def test_other_values_are_left_to_python(text: str) -> None:
    body = f'{{"domain":"d","type":"t","attributes":{{"x":{text}}}}}'.encode()
    assert not agree(body)


@pytest.mark.parametrize(
    "damage",
    [
        *(b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xc3", b"\xe0\x9f\xbf", b"\xed\xa0\x80"),
        *(b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\xff"),
    ],
)
def test_bytes_that_are_no_utf8_are_left_to_python(damage: bytes) -> None:
    for before, after in ((b'"d', b'"'), (b'"d","node":"', b'"'), (b'"d","body":"', b'"')):
        assert not agree(b'{"type":"t","domain":' + before + damage + after + b"}")


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"[{}]", b"7", b'{"domain":"d"}', b'{"domain":"","type":"t"}', b"[{},]"),
        *(
            b'{"domain":"d","type":"t"}{}',
            b'[{"domain":"d","type":"t"}',
            b'{"domain":1,"type":"t"}',
        ),
        b'{"domain":"d","domain":"d","type":"t"}',
        b'{"domain":"d","type":"t","body":1,"body":1}',
        b'{"domain":"d","type":"t","attributes":[]}',
        b'{"domain":"d","type":"t","attributes":{},"attributes":{}}',
        b'{"domain":"d\\n","type":"t"}',
        b'{"domain":"d","type":"t","content_type":"application/json","body":1}',
    ],
)
def test_other_bodies_are_left_to_python(body: bytes) -> None:
    assert not agree(body)


def test_what_exceeds_a_limit_is_left_to_python() -> None:
    names = {str(n): n for n in range(limits.ATTRIBUTES_COUNT_MAX)}
    values = {"a": [0] * (limits.ATTRIBUTES_VALUES_MAX - 1)}
    text = "a" * limits.TEXT_CHARS_MAX
    size = limits.ATTRIBUTES_BYTES_MAX - len('{"a":""}')
    large = {"a": "b" * size}
    body = "b" * (limits.EVENT_BYTES_MAX - 200)
    within: list[dict[str, Any]] = [
        {"attributes": names},
        {"attributes": values},
        {"attributes": large},
        {"node": text},
        {"body": body},
    ]
    beyond: list[dict[str, Any]] = [
        {"attributes": names | {"one": 1}},
        {"attributes": {"a": [*values["a"], 0]}},
        {"attributes": {"a": large["a"] + "b"}},
        {"node": text + "a"},
        {"body": body + "b" * 200},
    ]
    for more in within:
        assert agree(json.dumps(PLAIN | more, separators=(",", ":")).encode()), [*more]
    for more in beyond:
        assert not agree(json.dumps(PLAIN | more, separators=(",", ":")).encode()), [*more]
    most = [PLAIN] * limits.BATCH_EVENTS_MAX
    assert agree(json.dumps(most).encode())
    assert not agree(json.dumps([*most, PLAIN]).encode())
