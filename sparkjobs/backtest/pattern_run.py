"""A pattern fed with its events in order, on executors, by the engine of the hub's pattern groups:
the second half of its back-test. Plain module.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from eventhub.base import limits
from eventhub.base.clock import Clock, SystemClock
from eventhub.event.protobuf_codec import decode
from registrations.agents.run import AgentOutput, ProgramFailed, ProgramSuspended
from registrations.pattern_groups.shown import output_json, position_json, waiting_json
from registrations.patterns.pattern_engine import (
    Announce,
    Dropped,
    Ended,
    EventPosition,
    Match,
    Notify,
)
from sparkjobs.backtest.pattern_query import PATTERN, PatternQuery
from sparkjobs.tables import INT, TEXT

# One row per event with outputs (`sequence` is set), and one per task (`task` is set).
PATTERN_OUTPUT = pa.schema(
    [
        pa.field("clock_us", INT),  # rows are ordered by it, then by stream, segment and sequence
        pa.field("stream_id", INT),
        pa.field("segment_id", INT),
        pa.field("segment", TEXT),
        pa.field("sequence", INT),
        pa.field("appended_at_us", INT),
        pa.field("matches", INT),
        pa.field("outputs", INT),  # notifications and announced events
        pa.field("sample", TEXT),  # a JSON list of matches and other outputs, of a task's first ...
        pa.field("sample_matches", INT),  # ... and how many of them are matches
        pa.field("task", TEXT),  # the totals of a task as JSON
    ]
)
_OTHER = {Notify: "notified", Announce: "announced", ProgramFailed: "failed"}
_NOTHING = dict.fromkeys(PATTERN_OUTPUT.names)


def run_pattern(
    batches: Iterator[pa.RecordBatch], query: PatternQuery, end_us: int
) -> Iterator[pa.RecordBatch]:
    """Feed the events of one task, PATTERN_EVENT in order, and yield PATTERN_OUTPUT. `end_us`: when
    the last event of all tasks was appended.
    """
    feeding = PatternFeeding(query, SystemClock())
    for batch in batches:
        if feeding.stopped is None:  # otherwise only read them: Spark expects it
            yield _batch(list(feeding.feed(batch.to_pylist())))
    yield _batch([{**_NOTHING, "task": json.dumps(feeding.totals(end_us))}])


class PatternFeeding:
    """One engine and what it has found so far. `stopped`: why it takes no more events."""

    def __init__(self, query: PatternQuery, clock: Clock) -> None:
        self.stopped: dict[str, Any] | None = None
        self._query = query
        self._engine = query.engine()
        self._names = dict(query.streams)
        self._clock = clock
        self._counts: Counter[str] = Counter(dict.fromkeys(("fed", "matches", *_OTHER.values()), 0))
        self._dropped: Counter[str] = Counter()
        self._listed = {"matches": 0, "outputs": 0}
        self._listed_bytes = 0
        self._peak_keys = self._peak_bytes = 0

    def feed(self, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Feed events until the pattern ends, and yield a row for each that has outputs."""
        for row in rows:
            self._counts["fed"] += 1
            position = EventPosition(
                self._counts["fed"],
                *(row["stream_id"], row["segment"], row["sequence"], row["appended_at_us"]),
            )
            self._engine.pass_time(row["clock_us"])
            outputs = self._engine.feed(position, decode(row["payload"]))
            self._note_load()
            if outputs:
                yield from self._row(row, position, outputs)
            if self.stopped is None and self._clock.now_us() >= self._query.stops_us:
                self.stopped = {"reason": "time_max", "at": self._shown(position), "fault": None}
            if self.stopped is not None:
                return

    def totals(self, end_us: int) -> dict[str, Any]:
        """Return the counts of the task, and what the pattern waits for at the end."""
        self._engine.pass_time(end_us)
        load = self._engine.load(PATTERN)
        has_ended = self.stopped is not None and self.stopped["reason"] != "time_max"
        waiting = [] if has_ended else self._waiting()
        keys = len(waiting) if load is None else load.keys
        return {
            **self._counts,
            "dropped": self._dropped if load is None else load.dropped,
            "peak_keys": self._peak_keys,
            "peak_bytes": self._peak_bytes,
            "stopped": self.stopped,
            "waiting": waiting,
            "keys": 0 if has_ended else keys,
        }

    def _note_load(self) -> None:
        load = self._engine.load(PATTERN)
        if load is not None:
            self._peak_keys = max(self._peak_keys, load.keys)
            self._peak_bytes = max(self._peak_bytes, load.bytes)

    def _row(
        self, row: dict[str, Any], position: EventPosition, outputs: list[AgentOutput]
    ) -> Iterator[dict[str, Any]]:
        before = self._counts.copy()
        listed: list[dict[str, Any]] = []
        for output in outputs:
            self._count(output, position)
            kind = "matches" if isinstance(output, Match) else "outputs"
            is_listed = isinstance(output, Match | Notify | Announce | ProgramFailed)
            is_listed &= self._listed_bytes < limits.BACKTEST_OUTPUTS_BYTES_MAX
            if is_listed and self._listed[kind] < self._query.sample_max:
                self._listed[kind] += 1
                listed.append(self._output(output))
        new = self._counts - before
        if new or listed:
            yield {
                **{name: row.get(name) for name in PATTERN_OUTPUT.names},
                "matches": new["matches"],
                "outputs": new["notified"] + new["announced"],
                "sample": json.dumps(listed) if listed else None,
                "sample_matches": sum(one["output"] == "match" for one in listed),
            }

    def _count(self, output: AgentOutput, position: EventPosition) -> None:
        if isinstance(output, Match):
            self._counts["matches"] += 1
        elif isinstance(output, Dropped):
            self._dropped[output.reason] += output.count
        elif isinstance(output, Ended):
            self.stopped = {"reason": "once", "at": self._shown(position), "fault": None}
        elif isinstance(output, ProgramSuspended):
            fault = output.fault._asdict()
            self.stopped = {"reason": "suspended", "at": self._shown(position), "fault": fault}
        else:
            self._counts[_OTHER[type(output)]] += 1

    def _output(self, output: AgentOutput) -> dict[str, Any]:
        found = output_json(output, self._names)
        found["bindings"] = _placed(found["bindings"]) if "bindings" in found else {}
        found["at"] = self._shown(output.position)
        size = len(json.dumps(found))
        if size > limits.BACKTEST_OUTPUT_CHARS_MAX:
            found |= {"bindings": None, "event": None}
        self._listed_bytes += min(size, limits.BACKTEST_OUTPUT_CHARS_MAX)
        return found

    def _waiting(self) -> list[dict[str, Any]]:
        """Return the partial matches of the keys with the oldest events."""
        found, size = [], 0
        for key in islice(self._engine.keys(PATTERN), limits.PATTERN_WAITING_KEYS_MAX):
            waiting = self._engine.waiting(PATTERN, key)
            if waiting is not None:
                tree = _placed_tree(waiting_json(waiting, self._names))
                size += len(json.dumps(tree))
                if size > limits.BACKTEST_WAITING_BYTES_MAX:
                    break
                found.append({"key": key, "tree": tree})
        return found

    def _shown(self, position: EventPosition) -> dict[str, Any]:
        return _place(position_json(position, self._names))


def _placed_tree(tree: dict[str, Any]) -> dict[str, Any]:
    since = tree["since"]
    return {
        **tree,
        "since": None if since is None else _place(since),
        "bound": _placed(tree["bound"]),
        "children": [_placed_tree(child) for child in tree["children"]],
    }


def _placed(bindings: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {name: [_place(one) for one in bound] for name, bound in bindings.items()}


def _place(position: dict[str, Any]) -> dict[str, Any]:
    """Return a position without its number among the events of its task, which says nothing."""
    return {name: value for name, value in position.items() if name != "order"}


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=PATTERN_OUTPUT)
