"""The append function against a simple model of its contract, on random requests."""

import itertools
from typing import Any, NamedTuple

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from eventhub.base import errors, limits
from eventhub.eventlog.append import append_batch
from eventhub.eventlog.drafts import Draft, DraftProducer, Outcome, Request
from tests.integration.eventlog_world import log_database, new_stream, payload, segments, stored

database = pytest.fixture(scope="module")(log_database)
UNKNOWN = 999_999_999
WINDOW = limits.PRODUCER_WINDOW


class Policy(NamedTuple):
    events_max: int
    bytes_max: int


class PlannedDraft(NamedTuple):
    """A draft before its stream is created: the number of its stream, or -1 for an unknown one."""

    stream: int
    size: int
    producer: tuple[int, int, int] | None


class Refusal(NamedTuple):
    code: str
    at: int


class LogModel:
    """The contract of the log, request by request."""

    def __init__(self, policies: list[Policy]) -> None:
        self.policies = policies
        self.events: list[list[int]] = [[] for _ in policies]  # sizes
        self.slots: dict[tuple[int, int, int], dict[int, tuple[int, int]]] = {}

    def append(self, requests: list[list[PlannedDraft]]) -> list[Any]:
        """Return for each request Refused, or for each draft its sequence and whether it is a
        duplicate.
        """
        batch = {  # what was stored before is known, however far the requests move the window
            (*producer, number): sequence
            for producer, slots in self.slots.items()
            for number, sequence in slots.values()
        }
        return [self._append(request, batch) for request in requests]

    def _append(
        self, request: list[PlannedDraft], batch: dict[tuple[int, int, int, int], int]
    ) -> Any:
        for index, plan in enumerate(request):
            if plan.stream < 0:
                return Refusal("unknown_stream", index)
        before = [list(events) for events in self.events]
        slots = {key: dict(found) for key, found in self.slots.items()}
        known = dict(batch)
        places: list[tuple[int, bool]] = []
        for index, plan in enumerate(request):
            place = self._place(plan, batch)
            if place is None:
                self.events, self.slots = before, slots
                batch.clear()
                batch.update(known)
                return Refusal("producer_window", index)
            places.append(place)
        return places

    def _place(
        self, plan: PlannedDraft, batch: dict[tuple[int, int, int, int], int]
    ) -> tuple[int, bool] | None:
        events = self.events[plan.stream]
        if plan.producer is not None:
            client, incarnation, number = plan.producer
            slots = self.slots.setdefault((plan.stream, client, incarnation), {})
            found = slots.get(number % WINDOW)
            if found is not None and found[0] == number:
                return found[1], True
            name = (plan.stream, client, incarnation, number)
            if name in batch:
                return batch[name], True
            if number <= max((n for n, _ in slots.values()), default=0) - WINDOW:
                return None
            slots[number % WINDOW] = (number, len(events) + 1)
            batch[name] = len(events) + 1
        events.append(plan.size)
        return len(events), False

    def segments(self, stream: int) -> list[tuple[int, int | None, int | None]]:
        """Return (first, last, bytes) as in the rows of `segments`."""
        policy, sizes = self.policies[stream], self.events[stream]
        found: list[tuple[int, int | None, int | None]] = []
        first = held = 0
        for at, size in enumerate(sizes, 1):
            held += size
            if at - first >= policy.events_max or held >= policy.bytes_max:
                found.append((first + 1, at, held))
                first, held = at, 0
        return [*found, (first + 1, None, None)]


NUMBERS = st.one_of(
    st.integers(1, 6),
    st.integers(WINDOW - 2, WINDOW + 6),
    st.integers(2 * WINDOW - 2, 2 * WINDOW + 6),
)
PRODUCERS = st.tuples(st.integers(1, 2), st.integers(1, 2), NUMBERS)
PLANS = st.builds(
    PlannedDraft,
    st.sampled_from([0, 0, 1, 1, 2, 2, 0, 1, 2, -1]),
    st.integers(0, 300),
    st.one_of(st.none(), PRODUCERS, PRODUCERS),
)
BATCHES = st.lists(st.lists(PLANS, min_size=1, max_size=6), min_size=1, max_size=5)
POLICIES = st.lists(
    st.builds(Policy, st.integers(1, 9), st.one_of(st.just(10_000), st.integers(1, 900))),
    min_size=3,
    max_size=3,
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(policies=POLICIES, batches=st.lists(BATCHES, min_size=1, max_size=6))
@example(  # a stored number is known, also after one in the same request that moves the window
    policies=[Policy(1, 10_000)] * 3,
    batches=[
        [[PlannedDraft(0, 0, (2, 2, 5))]],
        [[PlannedDraft(0, 0, (2, 2, WINDOW + 5)), PlannedDraft(0, 0, (2, 2, 5))]],
    ],
)
async def test_positions_segments_and_refusals_equal_the_models(
    database: str, policies: list[Policy], batches: list[list[list[PlannedDraft]]]
) -> None:
    ids = [
        new_stream(database, segment_events_max=p.events_max, segment_bytes_max=p.bytes_max)
        for p in policies
    ]
    model, numbers = LogModel(policies), itertools.count()
    expected: list[list[bytes]] = [[] for _ in ids]
    connection = await psycopg.AsyncConnection.connect(database, autocommit=True)
    async with connection:
        for plans in batches:
            requests: list[Request] = [
                [_draft(plan, ids, next(numbers)) for plan in r] for r in plans
            ]
            sized = [
                [plan._replace(size=len(d.payload)) for plan, d in zip(r, drafts, strict=True)]
                for r, drafts in zip(plans, requests, strict=True)
            ]
            said = model.append(sized)
            batch = await append_batch(connection, requests)
            assert [_outcome_of(outcome) for outcome in batch.outcomes] == said
            for request, outcome in zip(requests, said, strict=True):
                if not isinstance(outcome, Refusal):
                    for made, (_, again) in zip(request, outcome, strict=True):
                        if not again:
                            expected[ids.index(made.stream_id)].append(made.payload)
    with psycopg.connect(database) as reader:
        for at, stream_id in enumerate(ids):
            assert stored(reader, stream_id) == list(enumerate(expected[at], 1))
            assert segments(reader, stream_id) == model.segments(at)
            _check_places(reader, stream_id)


def _draft(plan: PlannedDraft, ids: list[int], number: int) -> Draft:
    producer = None if plan.producer is None else DraftProducer(*plan.producer)
    stream_id = UNKNOWN if plan.stream < 0 else ids[plan.stream]
    return Draft(stream_id, 1, payload(number, plan.size), producer)


def _outcome_of(outcome: Outcome) -> Any:
    if isinstance(outcome, errors.EventHubError):
        assert outcome.index is not None
        return Refusal(outcome.code, outcome.index)
    return [(place.sequence, place.duplicate) for place in outcome]


def _check_places(connection: psycopg.Connection[Any], stream_id: int) -> None:
    """Check that the head names the open segment, and that every stored number's position is that
    of its event.
    """
    [(open_id, head_id, first, sequence)] = connection.execute(
        "SELECT s.id, h.segment_id, s.first, h.sequence FROM heads h JOIN segments s"
        " ON s.stream_id = h.stream_id AND s.last IS NULL WHERE h.stream_id = %s",
        (stream_id,),
    ).fetchall()
    assert open_id == head_id
    assert first <= sequence + 1
    [(wrong,)] = connection.execute(
        "SELECT count(*) FROM producer_numbers p LEFT JOIN segments s ON s.uuid = p.segment"
        " LEFT JOIN events e ON e.segment_id = s.id AND e.sequence = p.sequence"
        " WHERE p.stream_id = %s AND e.sequence IS NULL",
        (stream_id,),
    ).fetchall()
    assert wrong == 0
