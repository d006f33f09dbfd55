"""Back-tests of patterns on a small hub's history, compared with the hub's engine that is fed the
same events one after the other in this process.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.agents.run import AgentOutput
from registrations.pattern_groups.definition import PatternDefinition, parsed
from registrations.pattern_groups.engine import HubEngine, HubPattern
from registrations.patterns.pattern_engine import (
    Announce,
    Bound,
    Dropped,
    EventPosition,
    Match,
    Notify,
)
from sparkjobs.backtest import local
from sparkjobs.backtest.pattern_events import PATTERN_EVENT, pattern_events
from sparkjobs.backtest.pattern_query import PatternQuery
from sparkjobs.backtest.pattern_run import PATTERN_OUTPUT, run_pattern
from sparkjobs.backtest.reading import ReadScope
from sparkjobs.backtest.run import run
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult
from sparkjobs.tables import SEGMENTS
from tests.spark import history as stored
from tests.spark.history import ORDERS, TICKS, ZONE, JobHistory, time_of
from tests.spark.results import assert_same_files

IDS = {"orders": ORDERS, "ticks": TICKS}
BOTH = ("orders", "ticks")
# each of five rooms has a vip order every 35 events
BY_ROOM = """{a[2..9]: order.paid | $vip == FALSE};
{b: order.paid | $vip == TRUE} do notify(b) per $room within 15m"""
ALL_ROOMS = """({a: order.paid | $vip == TRUE}; {b: order.paid | $room == 0})
do announce(Shop::Raised, {room = a.room, text = b.text})"""
COUNTED = """{a: order.paid | $vip == TRUE} do increment n, announce(Many, {n = counter(n)})
per $room"""
PAIRED = """(event (room ?r) (vip true) (@sequence ?s1))
(event (room ?r) (vip false) (@sequence ?s2)) (test (< ?s2 ?s1)) (memory 9)"""
AGENT = """(on (= vip true))
(define n (+ (recall 'n 0) 1))
(remember 'n n)
(when (> n 3) (notify (recent 3)) (announce 'many (object 'n n)))"""
TRIGGERED = "(on (= vip true)) (notify (event))"


class PatternBacktest(NamedTuple):
    result: JobResult
    folder: Path

    @property
    def details(self) -> dict[str, Any]:
        return dict(self.result.details)

    @property
    def matches(self) -> list[tuple[str, int, int, int]]:
        rows = pq.read_table(self.folder / "matches").to_pylist()
        names = ("stream", "sequence", "matches", "outputs")
        return [tuple(row[name] for name in names) for row in rows]

    @property
    def outputs(self) -> list[Any]:
        """All listed outputs as `compact` writes them: matches, then others."""
        return [_compact_json(one) for one in (*self.details["sample"], *self.details["outputs"])]


def back_test(
    spark: SparkSession, history: JobHistory, text: str, **params: Any
) -> tuple[PatternBacktest, PatternBacktest]:
    given = {"language": "ready", "streams": ["orders"], "sample_max": 1_000, **ZONE, **params}
    given |= {"pattern": text, "stream_ids": [IDS[name] for name in given["streams"]]}
    history.write()
    one, other = (history.spec("backtest", run=number, **given) for number in (1, 2))
    return (
        PatternBacktest(run(spark, one, Phases(spark.sparkContext)), Path(one.result)),
        PatternBacktest(local.run(other, lambda phase: None), Path(other.result)),
    )


class InProcess:
    """The hub's engine, fed with all events of the streams in the hub's order."""

    def __init__(
        self, history: JobHistory, text: str, language: str = "ready", streams: Any = ("orders",)
    ) -> None:
        ids = sorted(IDS[name] for name in streams)
        self.engine = HubEngine()
        self.engine.add(HubPattern(1, parsed(PatternDefinition(language, text)).tree))
        self.outputs: list[tuple[EventPosition, list[AgentOutput]]] = []
        in_order = sorted(event for id in ids for event in _of_stream(history, id))
        for order, (_, stream, sequence, segment, event) in enumerate(in_order, 1):
            time_us = stored.time_of(sequence)
            position = EventPosition(order, stream, segment, sequence, time_us)
            outputs = self.engine.feed(position, event)
            if outputs:
                self.outputs.append((position, outputs))

    @property
    def matches(self) -> list[tuple[str, int, int, int]]:
        found = []
        for position, outputs in self.outputs:
            matches = sum(isinstance(one, Match) for one in outputs)
            others = sum(isinstance(one, Notify | Announce) for one in outputs)
            if matches or others:
                found.append((_name(position.stream), position.sequence, matches, others))
        return found

    @property
    def compact(self) -> list[Any]:
        outputs = [one for _, several in self.outputs for one in several]
        shown = [one for one in outputs if isinstance(one, Match | Notify | Announce)]
        return [_compact(one) for one in sorted(shown, key=lambda one: not isinstance(one, Match))]

    @property
    def dropped(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for _, outputs in self.outputs:
            for one in outputs:
                if isinstance(one, Dropped):
                    found[one.reason] = found.get(one.reason, 0) + one.count
        return found


def _of_stream(history: JobHistory, id: int) -> Iterator[tuple[int, int, int, str, Event]]:
    """Yield the events of a stream, with the latest time up to each."""
    latest_us = 0
    for row in history.tables["segments"]:
        if row["stream_id"] == id:
            for sequence, event in history.events.get(row["id"], ()):
                latest_us = max(latest_us, stored.time_of(sequence))
                yield latest_us, id, sequence, row["uuid"], event


def _compact(output: Match | Notify | Announce) -> Any:
    at = _name(output.position.stream), output.position.sequence
    if isinstance(output, Announce):
        return at, "announce", output.key, output.event._asdict()
    kind = "match" if isinstance(output, Match) else "notify"
    bound = {name: [*map(_place, positions)] for name, positions in output.bindings.items()}
    return at, kind, output.key, bound


def _place(bound: Bound) -> Any:
    assert isinstance(bound, EventPosition)
    return _name(bound.stream), bound.segment, bound.sequence


def _compact_json(output: dict[str, Any]) -> Any:
    at = output["at"]["stream"], output["at"]["sequence"]
    if output["output"] == "announce":
        return at, "announce", output["key"], output["event"]
    bound = {
        name: [(one["stream"], one["segment"], one["sequence"]) for one in positions]
        for name, positions in output["bindings"].items()
    }
    return at, output["output"], output["key"], bound


def _name(stream: int) -> str:
    return next(name for name, id in IDS.items() if id == stream)


@contextmanager
def partitions(spark: SparkSession, count: int) -> Iterator[None]:
    spark.conf.set("spark.sql.shuffle.partitions", str(count))
    try:
        yield
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "1")


class ByHand(NamedTuple):
    """What executors return, without Spark: rows with outputs, and the totals of the only task."""

    rows: list[dict[str, Any]]
    totals: dict[str, Any]

    @property
    def matches(self) -> list[tuple[str, int, int, int]]:
        names = ("sequence", "matches", "outputs")
        return [(_name(row["stream_id"]), *(row[name] for name in names)) for row in self.rows]

    @property
    def outputs(self) -> list[Any]:
        listed = [one for row in self.rows for one in json.loads(row["sample"] or "[]")]
        listed = [one for one in listed if one["output"] != "failed"]
        return [
            _compact_json(one) for one in sorted(listed, key=lambda one: one["output"] != "match")
        ]


def query_of(history: JobHistory, text: str, language: str, streams: Any = BOTH) -> PatternQuery:
    scope = ReadScope(str(history.folder / "inputs"), history.archive.as_uri(), None, None)
    ids = tuple((IDS[name], name) for name in streams)
    return PatternQuery(language, text, False, ids, None, "acme", (), 1_000, scope)


def by_hand(history: JobHistory, query: PatternQuery) -> ByHand:
    """Run a query in this process, over a clock that is never set back."""
    segments = [
        row
        for row in history.tables["segments"]
        if row["stream_id"] in dict(query.streams) and row["source"] != "none"
    ]
    read = pattern_events(iter(pa.Table.from_pylist(segments, SEGMENTS).to_batches()), query)
    events = pa.Table.from_batches([*read], PATTERN_EVENT).to_pylist()
    faulty = [row["segment_id"] for row in events if row["fault"] is not None]
    taken = [row for row in events if row["payload"] and row["segment_id"] not in faulty]
    taken.sort(key=lambda row: [row[name] for name in ("clock_us", "stream_id", "sequence")])
    batches = pa.Table.from_pylist(taken, PATTERN_EVENT).to_batches(max_chunksize=50)
    found = run_pattern(iter(batches), query, time_of(130))
    rows = pa.Table.from_batches([*found], PATTERN_OUTPUT).to_pylist()
    [task] = [row["task"] for row in rows if row["task"] is not None]
    return ByHand([row for row in rows if row["sequence"] is not None], json.loads(task))


@pytest.mark.parametrize(
    ("language", "text", "streams"),
    [
        ("ready", BY_ROOM, BOTH),
        ("ready", ALL_ROOMS, BOTH),
        ("ready", COUNTED, ("orders",)),
        ("temporal", PAIRED, BOTH),
        ("agent", AGENT, BOTH),
        ("agent", TRIGGERED, ("ticks",)),
    ],
)
def test_executors_find_what_the_hubs_engine_finds(
    history: JobHistory, language: str, text: str, streams: Any
) -> None:
    expected = InProcess(history, text, language, streams)
    found = by_hand(history, query_of(history, text, language, streams))
    assert len(expected.matches) >= 3
    assert found.matches == expected.matches
    assert found.outputs == expected.compact
    keys = [key for key in expected.engine.keys(1) if expected.engine.waiting(1, key)]
    assert {one["key"] for one in found.totals["waiting"]} == set(keys)
    assert found.totals["dropped"].keys() == expected.dropped.keys()


def test_keys_of_several_streams_are_spread_over_tasks(
    spark: SparkSession, history: JobHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_back(history, monkeypatch)
    expected = InProcess(history, BY_ROOM, streams=BOTH)
    with partitions(spark, 3):
        found, alone = back_test(spark, history, BY_ROOM, streams=[*BOTH])
    assert found.details["by_key"] is True
    assert_equal(found, expected)
    assert {**found.details, "by_key": False} == alone.details
    assert_same_files(found.folder, alone.folder)


def test_keys_that_together_exceed_a_limit_are_run_by_one_task(
    spark: SparkSession, history: JobHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_back(history, monkeypatch)
    expected = InProcess(history, BY_ROOM, streams=BOTH)
    monkeypatch.setattr(limits, "PATTERN_KEYS_MAX", 4)  # of the driver, not of its executors
    with partitions(spark, 3):
        found, _ = back_test(spark, history, BY_ROOM, streams=[*BOTH])
    assert found.details["by_key"] is False
    assert_equal(found, expected)


def set_back(history: JobHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of the history be set back by 15 minutes, and go on from there."""
    after = {True: 30, False: 0}
    monkeypatch.setattr(stored, "time_of", lambda number: time_of(number - after[number >= 65]))
    for id in history.events:
        history.store(id)


def assert_equal(found: PatternBacktest, expected: InProcess) -> None:
    assert len(expected.matches) >= 3
    assert found.matches == expected.matches
    assert found.outputs == expected.compact
    details = found.details
    counts = [sum(row[column] for row in expected.matches) for column in (2, 3)]
    assert details["matches"] == counts[0]
    assert details["notified"] + details["announced"] == counts[1]
    assert [sum(one[column] for one in details["histogram"]) for column in (1, 2)] == counts
    keys = [key for key in expected.engine.keys(1) if expected.engine.waiting(1, key)]
    assert {one["key"] for one in details["waiting"]} == set(keys)
    assert details["waiting_keys"] == len(keys)
    assert details["dropped"].keys() == expected.dropped.keys()
    page = (found.folder / "report.html").read_text()
    assert "currentColor" in page
    assert "Partial matches at the end" in page


def stopped(history: JobHistory, text: str, language: str, **fields: Any) -> dict[str, Any]:
    query = query_of(history, text, language, ("orders",))._replace(**fields)
    return dict(by_hand(history, query).totals)


def test_an_agent_that_exceeds_a_limit_is_suspended_and_reported(history: JobHistory) -> None:
    found = stopped(history, "(on (= vip true))\n(while true 1)", "agent")
    assert found["stopped"]["reason"] == "suspended"
    assert found["stopped"]["at"]["sequence"] == 7
    assert found["stopped"]["fault"]["code"] == "steps_max"
    assert found["stopped"]["fault"]["line"] == 2
    assert found["fed"] == 1
    assert found["waiting"] == []


def test_failed_runs_of_an_agent_are_counted_and_listed(history: JobHistory) -> None:
    text = "(if (= (field (event) 'vip) true) (+ 1 'x') (notify (event)))".replace("'x'", "'x")
    query = query_of(history, text, "agent", ("orders",))
    found = by_hand(history, query)
    assert found.totals["failed"] == 130 // 7
    assert found.totals["notified"] == 130 - 130 // 7
    listed = [one for row in found.rows for one in json.loads(row["sample"])]
    failed = [one for one in listed if one["output"] == "failed"]
    assert [one["at"]["sequence"] for one in failed] == [*range(7, 131, 7)]
    assert failed[0]["fault"]["code"] == "wrong_type"


def test_a_pattern_ends_with_its_first_match_if_it_is_to(history: JobHistory) -> None:
    found = stopped(history, BY_ROOM, "ready", once=True)
    assert found["matches"] == 1
    assert found["stopped"]["reason"] == "once"
    assert not query_of(history, BY_ROOM, "ready")._replace(once=True).spreads


def test_a_pattern_that_takes_too_long_is_stopped_and_reported(history: JobHistory) -> None:
    found = stopped(history, PAIRED, "temporal", stops_us=1)
    assert found["stopped"]["reason"] == "time_max"
    assert found["stopped"]["at"]["sequence"] == 1
    assert found["fed"] == 1


def test_what_a_pattern_discards_is_counted(
    history: JobHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TEMPORAL_JOINS_PER_EVENT_MAX", 20)
    text = "(event (room ?a)) (event (room ?b)) (event (room ?c)) (test (< ?a ?b ?c)) (memory 60)"
    expected = InProcess(history, text, "temporal")
    found = by_hand(history, query_of(history, text, "temporal", ("orders",)))
    assert expected.dropped
    assert found.totals["dropped"] == expected.dropped
    assert found.matches == expected.matches


def test_what_a_ready_pattern_discards_is_counted_exactly(
    history: JobHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PATTERN_LAST_DEFAULT", 3)
    text = "{a: order.paid | $room < 4}; {b: order.paid | $room == 9} per $room"
    totals = by_hand(history, query_of(history, text, "ready", ("orders",))).totals
    assert totals["dropped"] == {"last": 4 * (130 // 5 - 3)}
    assert totals["keys"] == totals["peak_keys"] == 4
    assert totals["peak_bytes"] > 4_000


@pytest.mark.parametrize("most", [300, 2_000])
def test_outputs_that_are_too_long_are_listed_without_their_contents(
    history: JobHistory, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(limits, "BACKTEST_OUTPUT_CHARS_MAX", most)
    found = by_hand(history, query_of(history, BY_ROOM, "ready"))
    listed = [one for row in found.rows for one in json.loads(row["sample"])]
    assert all((one["bindings"] is None) == (most == 300) for one in listed)


def test_the_list_of_outputs_is_bounded(
    history: JobHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BACKTEST_OUTPUTS_BYTES_MAX", 1_000)
    found = by_hand(history, query_of(history, BY_ROOM, "ready"))
    assert found.matches == InProcess(history, BY_ROOM, streams=BOTH).matches
    assert sum(len(row["sample"] or "") for row in found.rows) < 3_000


def test_an_event_that_had_expired_does_not_exist(history: JobHistory) -> None:
    sequence, event = history.events[1001][6]
    history.events[1001][6] = sequence, event._replace(expires_at_us=time_of(7))
    history.store(1001)
    found = by_hand(history, query_of(history, TRIGGERED, "agent", ("orders",)))
    assert [row["sequence"] for row in found.rows][:2] == [14, 21]


def test_a_segment_that_cannot_be_read_is_a_gap(history: JobHistory) -> None:
    history.path(1002).write_bytes(history.path(1002).read_bytes()[:-100])
    found = by_hand(history, query_of(history, TRIGGERED, "agent", ("orders",)))
    sequences = [row["sequence"] for row in found.rows]
    assert sequences == [one for one in range(7, 131, 7) if not 41 <= one <= 80]
