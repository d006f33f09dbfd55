"""Rows of an outbox table in PostgreSQL, read from its write-ahead log by logical replication: in
the order in which their transactions were committed. SQL module.

The publication and the slot are the client's: it creates and drops them. A position is the JSON
[WAL, rows]: everything before a place in the WAL was read, and some rows of the transaction after
it. The slot is confirmed up to positions that the hub has stored, never further.
"""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, NamedTuple

import orjson
from msgspec import Meta, Struct

from eventhub.base import limits
from eventhub.event.inbound import JSON
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_one, fetch_value
from registrations.client_databases import address_of
from registrations.connectors.errors import ConnectorFault
from registrations.connectors.kinds import pgoutput
from registrations.connectors.kinds.kind import ConnectorKind, InputSpec
from registrations.connectors.kinds.outbox_polling import USUAL, Name
from registrations.connectors.kinds.pgoutput import Commit, Insert, LoggedTable
from registrations.connectors.kinds.postgresql import bounded, opened
from registrations.connectors.kinds.replication_stream import ReplicationStream
from registrations.connectors.rows import InputBatch, InputRow

_SLOT = """
SELECT plugin::text AS plugin, database = current_database() AS is_here,
       wal_status::text AS wal_status,
       COALESCE(confirmed_flush_lsn - '0/0', 0)::bigint AS confirmed,
       (pg_current_wal_lsn() - '0/0')::bigint AS head
  FROM pg_replication_slots WHERE slot_name = %s
"""
_PUBLISHED = """
SELECT EXISTS (SELECT FROM pg_publication_tables
                WHERE pubname = %s AND schemaname = %s AND tablename = %s) AS is_published
"""


class ReplicationSettings(Struct, forbid_unknown_fields=True):
    """The table, and the client's publication and slot. `body`: the column that becomes the event's
    body; without it the row as JSON.
    """

    table: Name
    slot: Annotated[str, Meta(pattern="^[a-z0-9_]{1,63}$")]
    publication: Annotated[str, Meta(pattern="^[a-z0-9_]{1,63}$")]
    schema: Name = "public"
    body: Name | None = None
    content_type: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX)] = ""


class _FoundSlot(NamedTuple):
    """The slot; `confirmed`: what the server may forget, `head`: the end of its WAL."""

    plugin: str
    is_here: bool
    wal_status: str | None
    confirmed: int
    head: int


class WalPlace(NamedTuple):
    """A position: a place in the WAL, and how many rows of the transaction after it were read."""

    wal: int
    rows: int = 0

    def text(self) -> str:
        return orjson.dumps([*self]).decode()


class PlacedRow(NamedTuple):
    """A row, and the position after it; the last one of a transaction has the place after that."""

    place: WalPlace
    row: InputRow


class ReplicatedTable:
    """The table of one connector, on the connection of its stream."""

    def __init__(self, stream: ReplicationStream, spec: InputSpec, slot: _FoundSlot) -> None:
        self._stream = stream
        self._settings: ReplicationSettings = spec.settings
        self._slot = slot
        self._relations: dict[int, LoggedTable] = {}
        self._started = False
        self._done = WalPlace(0)  # of the last transaction that ended, or row that was read
        self._skipped = 0  # rows of the first transaction that were read before
        self._last: InputRow | None = None  # until it is known whether its transaction ends
        self._rows: deque[PlacedRow] = deque()
        self._sent = 0

    async def start(self) -> str:
        """Return the position of a connector that has none: the slot's."""
        return WalPlace(self._slot.confirmed).text()

    async def read(self, position: str) -> InputBatch:
        """Return the rows after a position: the one that was returned last, or one before it in the
        same batch. Raises ConnectorFault.
        """
        place = WalPlace(*orjson.loads(position))
        if not self._started:
            await self._begin(place)
        while self._rows and self._rows[0].place <= place:
            self._rows.popleft()
        self._stream.confirm(place.wal)
        if not self._rows:
            self._take()
        if not self._rows and await self._stream.arrived(limits.CONNECTOR_POLL_S_MAX):
            self._take()
        found: list[InputRow] = []
        size = 0
        for placed in self._rows:
            size += len(placed.row.document or b"")
            if found and size > limits.CONNECTOR_BATCH_BYTES:
                break
            found.append(placed.row)
            if len(found) == limits.CONNECTOR_ROWS_AT_ONCE:
                break
        return InputBatch(found, position="" if found else self._idle_position(place))

    async def lag(self, position: str) -> int:
        """Return how many rows have arrived and are to be read."""
        place = WalPlace(*orjson.loads(position))
        if place.wal > max(self._slot.head, self._sent):
            raise _ahead()
        rows = sum(placed.place > place for placed in self._rows)
        return min(rows, limits.CONNECTOR_LAG_ROWS_MAX)

    async def _begin(self, place: WalPlace) -> None:
        if self._slot.confirmed > place.wal:
            text = (
                "The slot was confirmed beyond the position of the connector: it was created again,"
                " or something else reads it. Rows between may be missing; see docs/connectors.md."
            )
            raise ConnectorFault("slot_moved", text, is_lasting=True)
        own = self._settings
        await self._stream.start(own.slot, own.publication, place.wal)
        self._done, self._skipped, self._started = WalPlace(place.wal), place.rows, True

    def _idle_position(self, place: WalPlace) -> str:
        """Return the position to store while there is no row: what the server has sent was of other
        tables, and it may forget it.
        """
        if (
            self._last is not None
            or place.rows
            or self._sent < place.wal + limits.CONNECTOR_WAL_BYTES
        ):
            return ""
        self._done = WalPlace(self._sent)
        return self._done.text()

    def _take(self) -> None:
        """Turn what has arrived into rows."""
        for piece in self._stream.pieces():
            self._sent = max(self._sent, piece.sent if not piece.message else 0)
            match pgoutput.read_message(piece.message):
                case LoggedTable() as relation:
                    self._relations[relation.oid] = relation
                case Insert() as insert:
                    self._insert(insert)
                case Commit(end):
                    self._commit(end)
            if len(self._rows) >= limits.CONNECTOR_ROWS_AT_ONCE:
                return

    def _insert(self, insert: Insert) -> None:
        relation = self._relations[insert.relation]
        if (relation.schema, relation.table) != (self._settings.schema, self._settings.table):
            return
        self._place_last(self._done._replace(rows=self._done.rows + 1))
        self._last = self._row(relation, insert)

    def _commit(self, end: int) -> None:
        self._place_last(WalPlace(end))
        self._done, self._skipped = WalPlace(end), 0

    def _place_last(self, place: WalPlace) -> None:
        """Put the row before into the queue, unless it was read before a restart."""
        row, self._last = self._last, None
        if row is None:
            return
        self._done = place
        if self._skipped > 0:
            self._skipped -= 1
            return
        self._rows.append(PlacedRow(place, row._replace(position=place.text())))

    def _row(self, relation: LoggedTable, insert: Insert) -> InputRow:
        names = [column.name for column in relation.columns]
        document = pgoutput.document_of(relation.columns, insert.values)
        encoded: bytes | None = orjson.dumps(document)
        body: bytes | None = encoded
        content_type = JSON
        if self._settings.body is not None:
            if self._settings.body not in names:
                text = f"The table has no column {self._settings.body}."
                raise ConnectorFault("no_column", text, is_lasting=True)
            at = names.index(self._settings.body)
            type = relation.columns[at].type
            body = pgoutput.body_of(type, insert.values[at])
            content_type = pgoutput.media_type_of(type)
        if encoded is not None and len(encoded) > limits.CONNECTOR_ROW_BYTES_MAX:
            encoded = None
        name = dict(zip(names, insert.values, strict=True)).get("id") or ""
        return InputRow(name, encoded, body, self._settings.content_type or content_type, "")


@asynccontextmanager
async def open_stream(spec: InputSpec) -> AsyncIterator[ReplicatedTable]:
    """Connect, and check the publication and the slot. Raises ConnectorFault."""
    settings: ReplicationSettings = spec.settings
    async with opened(spec) as connection, bounded(connection):
        slot = await _checked_slot(connection, settings)
    async with opened(spec, replication="database") as connection:
        yield ReplicatedTable(ReplicationStream(connection), spec, slot)


async def _checked_slot(connection: Connection, settings: ReplicationSettings) -> _FoundSlot:
    own = (settings.publication, settings.schema, settings.table)
    if not await fetch_value(connection, _PUBLISHED, own):
        text = f"The publication {settings.publication} has no table {settings.table}."
        raise ConnectorFault("no_publication", text, is_lasting=True)
    slot = await fetch_one(connection, _FoundSlot, _SLOT, (settings.slot,))
    if slot is None or slot.plugin != "pgoutput" or not slot.is_here:
        text = f"There is no slot {settings.slot} of this database with the plugin pgoutput."
        raise ConnectorFault("no_slot", text, is_lasting=True)
    if slot.wal_status == "lost":
        text = "The server has removed WAL that the slot needs; see docs/connectors.md."
        raise ConnectorFault("slot_lost", text, is_lasting=True)
    return slot


def _ahead() -> ConnectorFault:
    return ConnectorFault(
        "position_ahead",
        "The server's WAL is behind the position of the connector: it was restored, or is another"
        " one. Create the slot and the connector again; see docs/connectors.md.",
        is_lasting=True,
    )


KIND = ConnectorKind(
    "outbox-replication",
    "Rows of a PostgreSQL table, read by logical replication",
    ReplicationSettings,
    USUAL,
    address_of,
    open_stream,
)
