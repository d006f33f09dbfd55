"""Events of every kind, for property tests."""

import orjson
from hypothesis import strategies as st

from eventhub.event.envelope import ALL_MASK, Event
from eventhub.event.identity import EventId

INT64 = st.integers(0, 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
KEY = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)  # a column
NAME = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
TIMES_US = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
IDS = st.one_of(st.none(), NAME, st.builds(EventId, NAME, INT64, INT64, INT64))
BODIES = st.one_of(
    st.just((None, "")),
    st.tuples(st.binary(max_size=40), st.just("image/png")),
    st.tuples(VALUES.map(orjson.dumps), st.just("application/json")),
)


@st.composite
def events(draw: st.DrawFn) -> Event:
    body, content_type = draw(BODIES)
    return Event(
        domain=draw(NAME),
        type=draw(NAME),
        attributes=draw(st.dictionaries(TEXT, VALUES, max_size=4)),
        id=draw(IDS),
        source=draw(TEXT),
        name=draw(TEXT),
        version=draw(TEXT),
        body=body,
        content_type=content_type,
        node=draw(TEXT),
        application=tuple(draw(st.lists(TEXT, max_size=3))),
        environment=draw(st.none() | st.dictionaries(NAME, TEXT, min_size=1, max_size=2)),
        mask=draw(st.integers(1, ALL_MASK)),
        priority=draw(st.integers(-1000, 1000)),
        expires_at_us=draw(TIMES_US),
        time_us=draw(TIMES_US),
        key=draw(KEY),
        bundle=draw(TEXT),
        depends=tuple(draw(st.lists(TEXT, max_size=3))),
        correlation=draw(TEXT),
        cause=draw(TEXT),
        traceparent=draw(TEXT),
        destinations=tuple(draw(st.lists(NAME, max_size=3))),
        audience=tuple(draw(st.lists(NAME, max_size=3))),
        security_level=draw(st.sampled_from(["low", "med", "high"])),
        summary=draw(TEXT),
        bundle_number=draw(INT64),
        time_constraint_ms=draw(INT64),
        merge_scheme=draw(TEXT),
        tombstone=draw(st.booleans()),
        order=draw(st.sampled_from(["", "causal", "none"])),
        filterable_data=draw(st.booleans()),
    )
