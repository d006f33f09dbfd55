"""Tables of PostgreSQL databases: each event is a row, inserted once. SQL module.

The server makes the values of a row from JSON by the types of the table's columns. The id of the
delivery is unique in the table, so an event that is stored again is already there.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from tempfile import NamedTemporaryFile
from typing import Annotated, Any

import orjson
import psycopg
from msgspec import UNSET, Meta, Struct, UnsetType, field
from psycopg import sql

from eventhub.base import limits
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, sever
from eventhub.postgresql.rows import fetch_values
from registrations.client_databases import (
    DatabaseTarget,
    PrivateDatabase,
    answered_shortly,
    connect_to,
    parsed,
)
from registrations.endpoints.certificates import describe
from registrations.sinks.kind import SinkAnswer, SinkEvent, SinkFault, SinkKind, SinkSpec
from registrations.sinks.places import check_place, parse_place
from registrations.sinks.pointers import Pointer, path_of, value_at

Name = Annotated[
    str, Meta(min_length=1, max_length=limits.SINK_NAME_BYTES_MAX, pattern=r"^[^\x00%]+$")
]
_FORM = "Write postgresql://HOST:PORT/DATABASE, with ?sslmode=… if need be."
_ID = "/id"
_INSERT = """
INSERT INTO {table} ({columns})
SELECT {values} FROM jsonb_populate_recordset(NULL::{table}, %s::jsonb) AS given
    ON CONFLICT ({id}) DO NOTHING
"""
# columns that need a value and get none
_UNFILLED = """
SELECT attname::text FROM pg_attribute
 WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
   AND attnotnull AND NOT atthasdef AND attidentity = '' AND NOT attname = ANY (%s)
 ORDER BY attnum
"""


def _usual_columns() -> dict[str, str]:
    names = ("id", "stream", "segment", "sequence", "appended_at")
    return {**{name: f"/{name}" for name in names}, "document": ""}


class TableSettings(Struct, forbid_unknown_fields=True):
    """The table, and by column the JSON pointer (RFC 6901) into what a batch of callbacks has of an
    event. One column has `/id`, the id of the delivery. `sslrootcert`: the authorities that the
    server's certificate is verified by, in PEM, instead of the machine's.
    """

    table: Name
    schema: Name = "public"
    columns: Annotated[
        dict[Name, Pointer], Meta(min_length=1, max_length=limits.SINK_COLUMNS_MAX)
    ] = field(default_factory=_usual_columns)
    sslrootcert: Annotated[str, Meta(max_length=limits.ENDPOINT_PEM_CHARS_MAX)] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if sum(pointer == _ID for pointer in self.columns.values()) != 1:
            raise ValueError("One column has the pointer `/id`, and a unique index")
        most = limits.SINK_NAME_BYTES_MAX
        if any(len(name.encode()) > most for name in (self.table, self.schema, *self.columns)):
            raise ValueError(f"PostgreSQL cuts names to {most} bytes; give them as they are there")
        if self.sslrootcert is not UNSET:
            describe(self.sslrootcert)


class TableSink:
    """The table of one endpoint, on a connection of its own."""

    def __init__(self, connection: Connection, settings: TableSettings) -> None:
        self._connection = connection
        self._is_busy = False
        self._name = sql.Identifier(settings.schema, settings.table)
        self._columns = settings.columns
        self._paths = {name: path_of(pointer) for name, pointer in settings.columns.items()}
        self._takes_gaps = any(path[:1] in ([], ["gap"]) for path in self._paths.values())
        id = next(name for name, pointer in settings.columns.items() if pointer == _ID)
        self._insert = sql.SQL(_INSERT).format(
            table=self._name,
            columns=sql.SQL(", ").join(map(sql.Identifier, settings.columns)),
            values=sql.SQL(", ").join(sql.Identifier("given", name) for name in settings.columns),
            id=sql.Identifier(id),
        )

    async def check(self) -> str:
        await self._run(b"[]")  # the server checks table, columns, index and grants
        table = self._name.as_string(self._connection)
        try:
            unfilled = await fetch_values(self._connection, _UNFILLED, (table, list(self._columns)))
        except psycopg.Error as error:
            raise fault_of(error) from None
        if unfilled:
            names = ", ".join(unfilled)
            raise SinkFault(
                "rejected",
                f"Columns without a default are NOT NULL and in no setting: {names}. Add them to"
                " `settings.columns`, or let them be null.",
            )
        return f"The table {table} takes events."

    async def store(self, events: Sequence[SinkEvent]) -> SinkAnswer:
        rows: list[dict[str, orjson.Fragment]] = []
        gaps, bytes_left = 0, limits.SINK_ROWS_BYTES_MAX
        for event in events:
            document = orjson.loads(event.document)
            if "gap" in document and not self._takes_gaps:
                gaps += 1
                continue
            row = {}
            for name, path in self._paths.items():
                value = orjson.dumps(value_at(document, path)) if path else event.document
                row[name] = orjson.Fragment(value)
                bytes_left -= len(value)
                if bytes_left < 0:
                    raise _too_large(len(rows) + 1)
            rows.append(row)
        inserted = await self._run(orjson.dumps(rows)) if rows else 0
        table = self._name.as_string(self._connection)
        answer = f"{inserted} inserted, {len(rows) - inserted} were there before"
        if gaps:
            answer += f", {gaps} gap notices left out, which no column takes"
        return SinkAnswer(f"INSERT INTO {table}: {len(rows)} rows", answer)

    def close(self) -> None:
        sever(self._connection)
        if not self._is_busy:
            self._connection.pgconn.finish()

    async def _run(self, rows: bytes) -> int:
        """Insert rows, all or none; return how many are new. Raises SinkFault."""
        self._is_busy = True
        try:
            with answered_shortly(self._connection, limits.SINK_ANSWER_BYTES_MAX):
                return (await self._connection.execute(self._insert, (rows.decode(),))).rowcount
        except psycopg.Error as error:
            raise fault_of(error) from None
        finally:
            self._is_busy = False


async def open_table(spec: SinkSpec) -> TableSink:
    """Connect to the database of an endpoint. Raises SinkFault."""
    given = spec.authentication
    target = _place(spec.url)._replace(user=given["username"], password=given["password"])
    session = {
        "statement_timeout": str(int(spec.timeout_s * 1_000)),
        "idle_in_transaction_session_timeout": "60000",
        "standard_conforming_strings": "on",
    }
    try:
        with _authorities(spec.settings.sslrootcert) as more:
            more["prepare_threshold"] = None
            connection = await connect_to(target, spec.addresses, session, spec.resolve, **more)
    except PrivateDatabase as error:
        raise SinkFault("refused_address", str(error)) from None
    except psycopg.Error as error:
        raise fault_of(error) from None
    return TableSink(connection, spec.settings)


@contextmanager
def _authorities(pem: str | UnsetType) -> Iterator[dict[str, Any]]:
    """Yield the parameter of libpq for certificates of authorities, which it reads from a file."""
    if pem is UNSET:
        yield {}
        return
    with NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        yield {"sslrootcert": file.name}


def fault_of(error: psycopg.Error) -> SinkFault:
    """Return what an error of psycopg means, in the server's words."""
    text = (error.diag.message_primary or str(error)).strip()
    if error.diag.message_detail and not isinstance(error, psycopg.errors.IntegrityError):
        text += f" ({error.diag.message_detail})"
    if isinstance(error, psycopg.errors.QueryCanceled):
        return SinkFault("timeout", text)
    if isinstance(error, psycopg.errors.InvalidAuthorizationSpecification) or (
        "authentication failed" in text
    ):
        return SinkFault("rejected", text)
    if isinstance(error, CONNECTION_ERRORS):
        return SinkFault("connection", text)
    is_of_value = isinstance(error, psycopg.DataError | psycopg.IntegrityError)
    return SinkFault("rejected", text, of_events=is_of_value and error.sqlstate is not None)


def _too_large(count: int) -> SinkFault:
    most = limits.SINK_ROWS_BYTES_MAX // 1024**2
    return SinkFault(
        "rejected",
        f"The values of {count} events have more than {most} MiB: several columns have the same"
        " large part of an event. Name fewer.",
        of_events=True,
    )


def _place(url: str) -> DatabaseTarget:
    return parse_place(url, parsed, _FORM)


KIND = SinkKind(
    "postgresql",
    "Rows of a PostgreSQL table",
    ("postgresql", "postgres"),
    TableSettings,
    partial(check_place, parse=_place),
    ("basic",),
    (),
    False,
    {"batch_events_max": limits.SINK_ROWS_DEFAULT},
    {"format": ("native",)},
    open_table,
)
