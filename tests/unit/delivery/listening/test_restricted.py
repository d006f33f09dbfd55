"""The test of stored bytes for restrictions of the audience."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.listening import restricted
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode

# the compiled test and the one in Python; both are the latter where it was not built
TESTS = (restricted.may_be_restricted, restricted.search)

# escaped, two names and values stay below 128 bytes: a longer length may look like a tag
TEXTS = st.text(st.characters(exclude_characters="\x01", codec="utf-8"), max_size=4)


def stored(**fields: Any) -> bytes:
    return encode(Event("d", "t", fields.pop("attributes", {}), **fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"expires_at_us": 1},
        {"expires_at_us": 2**62},
        {"destinations": ("a",)},
        {"destinations": ("a" * 1_000, "b")},
        {"audience": ("ops",)},
        {"audience": ("a" * 1_000, "b"), "body": b"x" * 5_000, "content_type": "x/y"},
        {"expires_at_us": 7, "destinations": ("a",), "body": b"x", "content_type": "x/y"},
    ],
)
def test_a_restriction_is_never_missed(fields: dict[str, Any]) -> None:
    assert all(test(stored(**fields)) for test in TESTS)


@given(name=TEXTS, key=TEXTS, attributes=st.dictionaries(TEXTS, TEXTS, max_size=2))
def test_short_texts_are_never_mistaken_for_a_restriction(
    name: str, key: str, attributes: dict[str, str]
) -> None:
    """Otherwise most events would be decoded needlessly."""
    payload = stored(name=name, key=key, attributes=attributes, correlation=name)
    assert not any(test(payload) for test in TESTS)


@given(body=st.binary(max_size=100), expires_at_us=st.integers(0, 2**62))
def test_a_chance_hit_only_costs_a_decoding(body: bytes, expires_at_us: int) -> None:
    payload = stored(body=body, content_type="x/y", expires_at_us=expires_at_us)
    assert all(test(payload) >= bool(expires_at_us) for test in TESTS)
