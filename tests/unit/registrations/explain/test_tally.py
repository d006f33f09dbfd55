"""The counts of a dry run: buckets never lose an event, however wide they become."""

from hypothesis import given
from hypothesis import strategies as st

from eventhub.event import protobuf_codec
from eventhub.event.envelope import Event
from eventhub.eventlog.stored import StoredEvent
from registrations.explain.tally import Series, Tally

BEGAN_US = 1_767_225_600_000_000
YEAR_US = 365 * 86_400 * 1_000_000
PAYLOAD = protobuf_codec.encode(Event("d", "t", {"a": 1}, body=b"{}", content_type="text/plain"))

times = st.lists(st.tuples(st.integers(0, 40 * YEAR_US), st.booleans()), max_size=60)


def stored(number: int, time_us: int) -> StoredEvent:
    return StoredEvent("4f0c2d3e-6d6a-4b0e-9d52-1f6f6d1c2a10", number, 1, time_us, PAYLOAD)


@given(times, st.integers(1, 7))
def test_every_event_is_in_the_bucket_of_its_time(
    given_times: list[tuple[int, bool]], buckets_max: int
) -> None:
    series = Series(buckets_max)
    for offset_us, matched in given_times:
        series.add(BEGAN_US + offset_us, matched=matched)
    shown = series.json()
    assert len(shown["looked_at"]) == len(shown["matched"]) <= buckets_max
    for name, counted in (
        ("looked_at", given_times),
        ("matched", [t for t in given_times if t[1]]),
    ):
        numbers = [(BEGAN_US + offset_us) // series.width_us for offset_us, _ in counted]
        first = min(((BEGAN_US + t) // series.width_us for t, _ in given_times), default=0)
        expected = [numbers.count(first + at) for at in range(len(shown[name]))]
        assert shown[name] == expected


def test_events_of_one_second_fill_several_buckets() -> None:
    series = Series()
    for n in range(1_000):
        series.add(BEGAN_US + n * 1_000, matched=n % 2 == 0)
    shown = series.json()
    assert (shown["width_s"], len(shown["looked_at"])) == (0.01, 100)
    assert shown["begins_at"] == "2026-01-01T00:00:00.000000Z"
    assert shown["matched"] == [5] * 100


def test_a_tally_has_the_first_and_last_matches_and_the_rate() -> None:
    tally = Tally(2)
    for n in range(1, 11):
        tally.add(stored(n, BEGAN_US + n * 1_800_000_000), matched=n % 2 == 0)
    shown = tally.json()
    assert [one["sequence"] for one in shown["samples"]["first"]] == [2, 4]
    assert [one["sequence"] for one in shown["samples"]["last"]] == [8, 10]
    assert shown["samples"]["first"][0]["event"] == {
        "domain": "d", "type": "t", "attributes": {"a": 1}, "mask": "9223372036854775808",
    }  # fmt: skip
    assert shown["rate_per_hour"] == 1.111
    few = Tally(3)
    few.add(stored(1, BEGAN_US), matched=True)
    assert (few.json()["rate_per_hour"], few.json()["samples"]["last"]) == (None, [])
