"""Pattern groups in a migrated database, written as the product writes them, and the order in which
forwarders consumed their events.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import orjson

from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.event.protobuf_codec import decode, encode
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import Draft
from registrations.pattern_groups.engine import HubEngine, HubPattern, compiled_pattern
from registrations.patterns.pattern_engine import EventPosition, Match
from tests.databases import migrated_database
from tests.integration.forward_world import World

# What forwarders consumed is deleted with the next snapshot; the test keeps a copy.
KEEP_JOURNAL = """
    CREATE TABLE kept_journal (LIKE pattern_journal);
    CREATE FUNCTION keep_journal() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO kept_journal VALUES (NEW.*); RETURN NEW; END';
    CREATE TRIGGER keep_journal AFTER INSERT ON pattern_journal FOR EACH ROW
    EXECUTE FUNCTION keep_journal()"""


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
        [[group, streams]] = self.sql(
            "SELECT g.id, g.streams FROM pattern_groups g JOIN patterns p ON p.group_id = g.id"
            " WHERE p.id = %s",
            pattern,
        )
        with self._transaction() as connection:
            barrier = self._barrier(connection, streams)
            connection.execute(
                "UPDATE pattern_versions SET until_barrier = %s"
                " WHERE pattern_id = %s AND until_barrier IS NULL",
                (barrier, pattern),
            )
            self._tell(connection, "pattern.deleted", {"pattern_group": group}, barrier)

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
        """Keep a copy of the journal from now on."""
        self.sql(KEEP_JOURNAL)


def uninterrupted(
    texts: dict[int, tuple[str, str]],
    order: Sequence[tuple[EventPosition, Event]],
) -> list[tuple[int, dict[str, list[int]]]]:
    """Return the matches of patterns, by id with language and text, in one run of the engines."""
    streams = tuple(sorted({position.stream for position, _ in order}))
    engine = HubEngine(streams)
    for number, (language, text) in sorted(texts.items()):
        engine.add(HubPattern(number, compiled_pattern(language, text)))
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
