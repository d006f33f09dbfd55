"""Pattern groups in a migrated database, written as the product writes them, and the order in which
forwarders consumed their events.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import orjson
import psycopg

from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.event.protobuf_codec import decode, encode
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import Draft
from registrations.pattern_groups.consumed import ConsumedRun
from registrations.pattern_groups.definition import parse_text
from registrations.pattern_groups.engine import HubEngine, HubPattern
from registrations.patterns.pattern_engine import EventPosition, Match
from tests.chaos.patterns import KEEP
from tests.databases import migrated_database
from tests.integration.forward_world import World

VERSIONS = """
    SELECT v.id, v.pattern_id, v.language, v.text, v.suspended, f.id, f.streams, f.sequences,
           u.id, u.streams, u.sequences
      FROM pattern_versions v JOIN barriers f ON f.id = v.from_barrier
      LEFT JOIN barriers u ON u.id = v.until_barrier
     WHERE v.group_id = %s ORDER BY v.id"""
Bound = dict[str, list[tuple[int, int]]]  # stream and sequence of each event of a variable


class StoredOutput(NamedTuple):
    """An event that a pattern caused, with its place."""

    sequence: int
    event: Event


class PatternWorld(World):
    """One database with pattern groups."""

    def emit_all(self, stream_id: int, events: Sequence[Event]) -> None:
        """Append events in one transaction."""
        drafts = [Draft(stream_id, DEFAULT_MASK, encode(one)) for one in events]
        with self._transaction() as connection:
            append_in(connection, drafts)

    def pattern_group(self, on: Sequence[int], output: int | None = None) -> int:
        """Create a group that begins at the heads of its streams."""
        ids = sorted(on)
        with self._transaction() as connection:
            barrier = self._barrier(connection, ids)
            row = connection.execute(
                "WITH made AS (INSERT INTO pattern_groups (zone_id, client_id, name, streams,"
                "  output_stream_id) VALUES (%s, %s, gen_random_uuid()::text, %s::bigint[], %s)"
                "  RETURNING id)"
                " INSERT INTO pattern_leases (group_id, streams, segments, sequences)"
                " SELECT made.id, b.streams, b.segments, b.sequences FROM made, barriers b"
                " WHERE b.id = %s RETURNING group_id",
                (self.zone, self.client, ids, output, barrier),
            ).fetchone()
            assert row is not None
            self._tell(connection, "pattern_group.created", {"pattern_group": row[0]}, barrier)
            return int(row[0])

    def patterns(
        self, group: int, texts: Sequence[str], language: str = "ready", **options: bool
    ) -> list[int]:
        """Create patterns at one barrier; return their ids."""
        [[streams]] = self.sql("SELECT streams FROM pattern_groups WHERE id = %s", group)
        with self._transaction() as connection:
            barrier = self._barrier(connection, streams)
            found = connection.execute(
                "WITH made AS (INSERT INTO patterns (zone_id, client_id, group_id, name)"
                "  SELECT %s, %s, %s, gen_random_uuid()::text FROM unnest(%s::text[]) RETURNING id)"
                " INSERT INTO pattern_versions (pattern_id, group_id, number, language, text, once,"
                "  recent, from_barrier)"
                " SELECT m.id, %s, 1, %s, t.text::json, %s, %s, %s"
                " FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM made) AS m"
                " JOIN unnest(%s::text[]) WITH ORDINALITY AS t (text, n) USING (n)"
                " RETURNING pattern_id",
                (
                    *(self.zone, self.client, group, list(texts), group, language),
                    *(options.get("once", False), options.get("recent", False), barrier),
                    [orjson.dumps(text).decode() for text in texts],
                ),
            ).fetchall()
            self._tell(connection, "pattern.created", {"pattern_group": group}, barrier)
            return sorted(row[0] for row in found)

    def end_pattern(self, pattern: int) -> None:
        """End a pattern at a barrier."""
        with self._ended(pattern, "deleted"):
            pass

    def change_pattern(
        self, pattern: int, text: str | None = None, *, suspended: bool = False
    ) -> None:
        """Begin another version of a pattern at a barrier, by default with the same text."""
        written = None if text is None else orjson.dumps(text).decode()
        with self._ended(pattern, "changed") as (connection, barrier):
            connection.execute(
                "INSERT INTO pattern_versions (pattern_id, group_id, number, language, text,"
                "  suspended, from_barrier)"
                " SELECT pattern_id, group_id, number + 1, language, COALESCE(%s::json, text), %s,"
                "  %s"
                " FROM pattern_versions WHERE pattern_id = %s ORDER BY number DESC LIMIT 1",
                (written, suspended, barrier, pattern),
            )

    @contextmanager
    def _ended(self, pattern: int, change: str) -> Iterator[tuple[psycopg.Connection[Any], int]]:
        """End the current version of a pattern at a barrier, in a transaction."""
        [[group]] = self.sql("SELECT group_id FROM patterns WHERE id = %s", pattern)
        with self._transaction() as connection:
            barrier = self._barrier(connection, [*self.streams_of(group)])
            connection.execute(
                "UPDATE pattern_versions SET until_barrier = %s"
                " WHERE pattern_id = %s AND until_barrier IS NULL",
                (barrier, pattern),
            )
            if change == "deleted":
                connection.execute(
                    "UPDATE patterns SET deleted_at = now() WHERE id = %s", (pattern,)
                )
            yield connection, barrier
            self._tell(connection, f"pattern.{change}", {"pattern_group": group}, barrier)

    def events(self, stream_id: int) -> list[StoredOutput]:
        """Return all events of a stream."""
        rows = self.sql(
            "SELECT e.sequence, e.payload FROM segments g JOIN events e ON e.segment_id = g.id"
            " WHERE g.stream_id = %s ORDER BY e.sequence",
            stream_id,
        )
        return [StoredOutput(sequence, decode(payload)) for sequence, payload in rows]

    def matches(self, stream_id: int) -> list[tuple[int, dict[str, list[int]]]]:
        """Return the matches in a stream, in order: the pattern, and the sequences that its
        variables are bound to.
        """
        found = []
        for _, event in self.events(stream_id):
            if event.type == "pattern.matched":
                values = event.attributes
                bound = {
                    name: [one["sequence"] for one in positions]
                    for name, positions in values["bindings"].items()
                }
                found.append((values["pattern"], bound))
        return found

    def system_events(self, type: str) -> list[dict[str, Any]]:
        """Return the attributes of events of `system`."""
        return [one.event.attributes for one in self.events(1) if one.event.type == type]

    def consumed(self, group: int) -> tuple[int, list[int]]:
        """Return the order number of the last consumed event of a group, and its cursors."""
        [found] = self.sql(
            "SELECT position, sequences FROM pattern_leases WHERE group_id = %s", group
        )
        return found[0], found[1]

    def keep_journal(self) -> None:
        """Keep a copy of the journal and of the snapshots from now on."""
        self.sql(KEEP)

    def order(self, group: int) -> list[tuple[int, int]]:
        """Return the stream and the sequence of each event that a group consumed, in order, from
        the copies. Each order number belongs to one event, in whichever process.
        """
        found: dict[int, tuple[int, int]] = {}

        def add(order: int, runs: Sequence[ConsumedRun]) -> None:
            for run in runs:
                for sequence in range(run.first, run.last + 1):
                    assert found.setdefault(order, (run.stream, sequence)) == (run.stream, sequence)
                    order += 1

        rows = self.sql(
            "SELECT first, streams, segments::text[], firsts, lasts FROM kept_journal"
            " WHERE group_id = %s",
            group,
        )
        for first, *columns in rows:
            add(first, [ConsumedRun(*run) for run in zip(*columns, strict=True)])
        for (state,) in self.sql("SELECT state FROM kept_states WHERE group_id = %s", group):
            engine = HubEngine()
            engine.restore(bytes(state))
            add(engine.consumed.order - engine.consumed.count + 1, list(engine.consumed.runs))
        assert sorted(found) == list(range(1, len(found) + 1))
        return [found[order] for order in sorted(found)]

    def placed_matches(self, stream_id: int) -> list[tuple[int, Bound]]:
        """Return the matches in a stream, in order, with stream and sequence of each event."""
        ids = dict(self.sql("SELECT name, id FROM streams"))
        return [
            (
                event.attributes["pattern"],
                {
                    name: [(ids[one["stream"]], one["sequence"]) for one in positions]
                    for name, positions in event.attributes["bindings"].items()
                },
            )
            for _, event in self.events(stream_id)
            if event.type == "pattern.matched"
        ]

    def streams_of(self, group: int) -> tuple[int, ...]:
        [[streams]] = self.sql("SELECT streams FROM pattern_groups WHERE id = %s", group)
        return tuple(streams)


class _Change:
    """The versions that begin and end at a barrier, which is a vector of sequences."""

    def __init__(self, sequences: dict[int, int]) -> None:
        self.sequences = sequences
        self.added: list[HubPattern] = []
        self.removed: list[int] = []


def expected_matches(world: PatternWorld, group: int) -> list[tuple[int, Bound]]:
    """Return the matches of a group in one run of the engines over its events in the order of its
    journal: each version sees the events between its barriers, and the order keeps to them.
    """
    changes: dict[int, _Change] = {}
    patterns: dict[int, int] = {}
    for id, pattern, language, text, suspended, *barriers in world.sql(VERSIONS, group):
        if suspended:
            continue
        patterns[id] = pattern
        since, since_streams, since_sequences, until, until_streams, until_sequences = barriers
        since_vector = dict(zip(since_streams, since_sequences, strict=True))
        hub = HubPattern(id, parse_text(language, text))
        changes.setdefault(since, _Change(since_vector)).added.append(hub)
        if until is not None:
            until_vector = dict(zip(until_streams, until_sequences, strict=True))
            changes.setdefault(until, _Change(until_vector)).removed.append(id)
    streams = world.streams_of(group)
    stored = {(id, one.sequence): one.event for id in streams for one in world.events(id)}
    engine, waiting = HubEngine(), [changes[barrier] for barrier in sorted(changes)]
    passed = dict.fromkeys(streams, 0)
    found: list[tuple[int, Bound]] = []
    for order, (stream, sequence) in enumerate(world.order(group), 1):
        while waiting and all(passed[id] >= at for id, at in waiting[0].sequences.items()):
            for number in waiting[0].removed:
                engine.remove(number)
            for hub in waiting[0].added:
                engine.add(hub)
            del waiting[0]
        assert sequence == passed[stream] + 1
        assert not waiting or sequence <= waiting[0].sequences[stream]
        passed[stream] = sequence
        position = EventPosition(order, stream, "s", sequence, order)
        for output in engine.feed(position, stored[stream, sequence]):
            if isinstance(output, Match):
                bound = {
                    name: [(one.stream, one.sequence) for one in value]  # type: ignore[union-attr]
                    for name, value in output.bindings.items()
                }
                found.append((patterns[output.pattern], bound))
    assert len(stored) == sum(passed.values())
    return found


def uninterrupted(
    texts: dict[int, tuple[str, str]],
    order: Sequence[tuple[EventPosition, Event]],
) -> list[tuple[int, dict[str, list[int]]]]:
    """Return the matches of patterns, by id with language and text, in one run of the engines."""
    engine = HubEngine()
    for number, (language, text) in sorted(texts.items()):
        engine.add(HubPattern(number, parse_text(language, text)))
    found = []
    for position, event in order:
        for output in engine.feed(position, event):
            if isinstance(output, Match) and engine.patterns[output.pattern].reports_matches:
                bound = {
                    name: [one.sequence for one in value if isinstance(one, EventPosition)]
                    for name, value in output.bindings.items()
                }
                found.append((output.pattern, bound))
    return found


def patterns_database() -> Iterator[PatternWorld]:
    """Yield a migrated database, as a fixture."""
    with migrated_database("patterns") as url, closing(PatternWorld(url)) as world:
        yield world
