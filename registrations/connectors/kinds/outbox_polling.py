"""Rows of an outbox table in PostgreSQL, read by polling: nothing but SELECT is needed. SQL module.

A row is read when all transactions that began to write before its own have ended: then no row can
appear before it. The order is that of the transactions' numbers, and within a transaction that of a
column. So no row is passed by, with any id, and however long its transaction took.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal, NamedTuple

import orjson
from msgspec import Meta, Struct
from psycopg import sql

from eventhub.base import limits
from eventhub.event.inbound import JSON
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_one, fetch_values
from registrations.client_databases import address_of
from registrations.connectors.errors import ConnectorFault
from registrations.connectors.kinds.kind import ConnectorKind, InputSpec
from registrations.connectors.kinds.postgresql import bounded, opened
from registrations.connectors.rows import InputBatch, InputRow
from registrations.sources.providers.provider import usual_map

Name = Annotated[str, Meta(min_length=1, max_length=63, pattern=r"^[^\x00%]+$")]

# The number of a row's transaction, with 64 bits. `xmin` has the lower 32 of them.
_OF_XMIN = "b.low - ((b.low - t.xmin::text::bigint) & 4294967295)"
_SETTLED_XMIN = "((b.low - t.xmin::text::bigint) & 4294967295) BETWEEN 1 AND 2147483648"
_BOUNDS = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS low"
# the rows are chosen before they are written as JSON, which is expensive
_READ = """
WITH b AS MATERIALIZED ({bounds})
SELECT r.number, r.place::text AS place,
       CASE WHEN octet_length(d.document) <= %(bytes_max)s THEN {body} END AS body,
       CASE WHEN octet_length(d.document) <= %(bytes_max)s THEN d.document END AS document
  FROM (SELECT {number} AS number, t.{order} AS place, t AS whole
          FROM b, {table} t
         WHERE {settled} AND {after}
         ORDER BY {sorted}, t.{order}
         LIMIT %(rows_max)s) r,
       LATERAL (SELECT to_jsonb(r.whole)::text AS document) d
 ORDER BY r.number, r.place
"""
_LAG = """
WITH b AS MATERIALIZED ({bounds})
SELECT count(*) AS rows
  FROM (SELECT FROM b, {table} t WHERE {unread} LIMIT %(rows_max)s) AS r
"""
_HORIZON = """
SELECT pg_snapshot_xmin(s)::text::bigint AS low, pg_snapshot_xmax(s)::text::bigint AS high
  FROM pg_current_snapshot() AS s
"""
_TABLE = """
SELECT oid::bigint AS oid, relkind::text AS relkind FROM pg_class WHERE oid = to_regclass(%s)
"""
_COLUMNS = """
SELECT attname::text AS name, atttypid::regtype::text AS type, attnotnull AS is_required
  FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
"""


class PollingSettings(Struct, forbid_unknown_fields=True):
    """The table, and its columns. `order`: orders the rows of one transaction, and is unique in it;
    `transaction`: of type xid8, DEFAULT pg_current_xact_id(), for an index; without it `xmin` is
    used, and each look reads the table; `body`: the event's body; without it the row as JSON.
    """

    table: Name
    schema: Name = "public"
    order: Name = "id"
    transaction: Name | None = None
    body: Name | None = None
    content_type: Annotated[str, Meta(max_length=limits.NAME_CHARS_MAX)] = ""
    start: Literal["beginning", "now"] = "beginning"


class _FoundTable(NamedTuple):
    oid: int
    relkind: str


class _TableColumn(NamedTuple):
    name: str
    type: str
    is_required: bool


class _Horizon(NamedTuple):
    """The numbers below which every transaction has ended, and which none has reached."""

    low: int
    high: int


class _ReadRow(NamedTuple):
    number: int
    place: str
    body: bytes | None
    document: str | None


class PolledTable:
    """The table of one connector. A position is the JSON [transaction, order] of the last row."""

    def __init__(
        self, connection: Connection, settings: PollingSettings, body_type: str | None
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._content_type = settings.content_type or _media_type(body_type)
        self._has_body = body_type is not None
        self._rows_max = limits.CONNECTOR_ROWS_FIRST
        self._pause_s = limits.CONNECTOR_POLL_S
        names = {
            "bounds": sql.SQL(_BOUNDS),
            "table": sql.Identifier(settings.schema, settings.table),
            "order": sql.Identifier(settings.order),
            "body": _body(settings.body, body_type),
            **_conditions(settings),
        }
        read, lag = sql.SQL(_READ), sql.SQL(_LAG)
        first = {**names, "after": names["from"], "unread": names["unread_from"]}
        self._read = {"": read.format(**first), "after": read.format(**names)}
        self._lag = {"": lag.format(**first), "after": lag.format(**names)}

    async def start(self) -> str:
        """Return the position of a connector that has none."""
        low = 0
        if self._settings.start == "now":
            low = (await self.horizon()).low
        return orjson.dumps([low, None]).decode()

    async def horizon(self) -> _Horizon:
        async with bounded(self._connection):
            found = await fetch_one(self._connection, _Horizon, _HORIZON)
        return found or _Horizon(0, 0)

    async def read(self, position: str) -> InputBatch:
        """Return the next rows. Raises ConnectorFault."""
        values = {**_values(position), "bytes_max": limits.CONNECTOR_ROW_BYTES_MAX}
        rows_max = self._rows_max
        async with bounded(self._connection):
            query = self._read["after" if values["place"] is not None else ""]
            rows = await self._fetch(query, {**values, "rows_max": rows_max})
        self._adapt_size(rows)
        if rows:
            self._pause_s = limits.CONNECTOR_POLL_S
        else:
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, limits.CONNECTOR_POLL_S_MAX)
        return InputBatch([self._row(row) for row in rows])

    async def lag(self, position: str) -> int:
        """Count the rows to be read. Raises ConnectorFault if the database is behind the
        position: it was restored, or is another one.
        """
        values = {**_values(position), "rows_max": limits.CONNECTOR_LAG_ROWS_MAX}
        if values["number"] > (await self.horizon()).high:
            raise _ahead()
        async with bounded(self._connection):
            query = self._lag["after" if values["place"] is not None else ""]
            [found] = await fetch_values(self._connection, query, values)
        return int(found)

    async def _fetch(self, query: sql.Composed, values: dict[str, Any]) -> list[_ReadRow]:
        cursor = self._connection.cursor(binary=False)
        await cursor.execute(query, values)
        return [_ReadRow(*row) for row in await cursor.fetchall()]

    def _adapt_size(self, rows: list[_ReadRow]) -> None:
        """Choose the size of the next batch by the bytes of this one."""
        if not rows:
            return
        size = sum(len(row.document or "") + len(row.body or b"") for row in rows)
        fitting = limits.CONNECTOR_BATCH_BYTES * len(rows) // max(size, 1)
        if any(row.document is None for row in rows):
            fitting = limits.CONNECTOR_ROWS_FIRST
        self._rows_max = max(1, min(fitting, limits.CONNECTOR_ROWS_AT_ONCE))

    def _row(self, row: _ReadRow) -> InputRow:
        document = None if row.document is None else row.document.encode()
        body = row.body if self._has_body else document
        position = orjson.dumps([row.number, row.place]).decode()
        return InputRow(row.place, document, body, self._content_type, position)


@asynccontextmanager
async def open_table(spec: InputSpec) -> AsyncIterator[PolledTable]:
    """Connect, and check the table and its columns. Raises ConnectorFault."""
    settings: PollingSettings = spec.settings
    async with opened(spec) as connection:
        async with bounded(connection):
            columns = await _columns(connection, settings)
        _check_columns(settings, columns)
        body_type = columns[settings.body].type if settings.body else None
        yield PolledTable(connection, settings, body_type)


async def _columns(connection: Connection, settings: PollingSettings) -> dict[str, _TableColumn]:
    name = sql.Identifier(settings.schema, settings.table).as_string(connection)
    table = await fetch_one(connection, _FoundTable, _TABLE, (name,))
    if table is None:
        raise ConnectorFault("no_table", f"There is no table {name}.", is_lasting=True)
    if table.relkind not in ("r", "p"):
        raise ConnectorFault("no_table", f"{name} is not a table.", is_lasting=True)
    columns = await fetch_all(connection, _TableColumn, _COLUMNS, (table.oid,))
    return {column.name: column for column in columns}


def _check_columns(settings: PollingSettings, columns: dict[str, _TableColumn]) -> None:
    named = (settings.order, settings.transaction, settings.body)
    for name in named:
        if name is not None and name not in columns:
            raise ConnectorFault("no_column", f"The table has no column {name}.", is_lasting=True)
    for name in (settings.order, settings.transaction):
        if name is not None and not columns[name].is_required:
            raise ConnectorFault(
                "nullable_column", f"The column {name} must be NOT NULL.", is_lasting=True
            )
    if settings.transaction is not None and columns[settings.transaction].type != "xid8":
        message = f"The column {settings.transaction} must be of type xid8."
        raise ConnectorFault("wrong_column", message, is_lasting=True)


def _conditions(settings: PollingSettings) -> dict[str, sql.Composable]:
    """Return the parts of the statements that read the number of a row's transaction. `from`: from
    a transaction on; `after`: after a row; `unread`: the same with rows that may not be read yet,
    which by their column come after all others, and by `xmin` before.
    """
    order = sql.Identifier(settings.order)
    if settings.transaction is None:
        number: sql.Composable = sql.SQL(_OF_XMIN)
        settled: sql.Composable = sql.SQL(_SETTLED_XMIN)
        given = sql.SQL("%(number)s::bigint")
    else:
        number = sql.SQL("t.{}").format(sql.Identifier(settings.transaction))
        settled = sql.SQL("{} < pg_snapshot_xmin(pg_current_snapshot())").format(number)
        given = sql.SQL("(%(number)s::text)::xid8")
    parts = {"number": number, "given": given, "order": order}
    as_number = (
        number if settings.transaction is None else sql.SQL("{}::text::bigint").format(number)
    )
    since = sql.SQL("{number} >= {given}").format(**parts)
    after = sql.SQL("({number}, t.{order}) > ({given}, %(place)s)").format(**parts)
    too_new = sql.SQL("{} OR NOT ({})")
    by_xmin = settings.transaction is None
    return {
        "number": as_number,
        "sorted": number,
        "settled": settled,
        "from": since,
        "after": after,
        "unread_from": too_new.format(since, settled) if by_xmin else since,
        "unread": too_new.format(after, settled) if by_xmin else after,
    }


def _body(name: str | None, type: str | None) -> sql.Composable:
    if name is None:
        return sql.SQL("NULL::bytea")
    column = sql.SQL("(r.whole).{}").format(sql.Identifier(name))
    if type == "bytea":
        return column
    return sql.SQL("convert_to({}::text, 'UTF8')").format(column)


def _media_type(type: str | None) -> str:
    if type in (None, "json", "jsonb"):
        return JSON
    return "application/octet-stream" if type == "bytea" else "text/plain"


def _values(position: str) -> dict[str, Any]:
    number, place = orjson.loads(position)
    return {"number": number, "place": place}


def _ahead() -> ConnectorFault:
    return ConnectorFault(
        "position_ahead",
        "The database is behind the position of the connector: it was restored, or is another one."
        " Create the connector again; see docs/connectors.md.",
        is_lasting=True,
    )


USUAL = usual_map(
    domain={"body": "/aggregatetype", "default": "Outbox"},
    type={"body": "/type", "default": "inserted"},
    id={"body": "/id"},
    attributes={"aggregateid": {"body": "/aggregateid"}},
)
KIND = ConnectorKind(
    "outbox-polling",
    "Rows of a PostgreSQL table, read by polling",
    PollingSettings,
    USUAL,
    address_of,
    open_table,
)
