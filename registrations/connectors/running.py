"""One connector that runs: reads rows, checks them as an emit does, and appends their events in the
transaction that moves its position. SQL module.

So each row becomes one event, also if the process is killed, or is stopped and another one reads on
meanwhile: the position is moved only from where this process has read. A repeat of an `id` is found
by the log.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
import psycopg
from psycopg_pool import AsyncConnectionPool

from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable, EventHubError, TooManyRequests
from eventhub.base.event_loop import wait_until_set
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.event.inbound import EventIn
from eventhub.eventlog import append
from eventhub.eventlog.append import append_whole
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.errors import StreamDeleting
from eventhub.eventlog.stored import StreamInfo
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.http.emit import EmitServices, Sender, checked_drafts, require_allowed
from eventhub.postgresql.connections import Connection, reading
from registrations.connectors.errors import ConnectorFault
from registrations.connectors.kinds.kind import ConnectorInput, InputSpec
from registrations.connectors.kinds.registry import KINDS, parse_settings
from registrations.connectors.rows import (
    InputRow,
    LostRows,
    RowMap,
    event_of_row,
    loss,
    refusal,
)
from registrations.connectors.statements import (
    Advance,
    ConnectorDefinition,
    ConnectorReport,
    advance,
    position_of,
    report,
)
from registrations.endpoints.addresses import AllowedAddresses
from registrations.endpoints.secrets import Keyring, Unsealable
from registrations.sources.mapping import parse_map

log = get_logger(__name__)
throttled = ThrottledLog(log)
_ROWS_IN_A_ROW = 50  # are mapped before other connectors have their turn; some 2 ms


class ConnectorContext(NamedTuple):
    """What the connectors of a process share. `pool`: of connections in autocommit mode."""

    services: EmitServices
    pool: AsyncConnectionPool[Connection]
    keyring: Keyring
    addresses: AllowedAddresses


class _Superseded(Exception):
    """The connector was changed, or another process has moved its position."""


class _Refused(NamedTuple):
    """A row that is no event, and why."""

    row: InputRow
    error: EventHubError


class _Checked(NamedTuple):
    """The events of the first `rows` rows of a batch, and those of these rows that are none."""

    rows: int
    drafts: list[Draft]
    refused: list[_Refused]


class RunningConnector:
    """A connector in this process. `definition` is replaced when only its quotas change."""

    def __init__(self, context: ConnectorContext, definition: ConnectorDefinition) -> None:
        self.definition = definition
        self.report = ConnectorReport(definition.id, "starting")
        self._context = context
        self._stopping = asyncio.Event()
        self._faults = 0  # in a row

    def stop(self) -> None:
        """Let `run` return after the transaction under way."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until `stop`, through faults; return if the connector was deleted."""
        while not self._stopping.is_set():
            try:
                if not await self._read_on():
                    return
            except _Superseded:
                await self._rest(limits.CONNECTOR_POLL_S)
            except ConnectorFault as fault:
                await self._pause(fault)
            except EventHubError as error:
                await self._pause(ConnectorFault(error.code, error.message))
            except Exception as error:  # a defect of a kind must not end the other connectors
                log.exception("connector_failed", connector=self.definition.id)
                await self._pause(ConnectorFault("internal", type(error).__name__))

    async def _pause(self, fault: ConnectorFault) -> None:
        """Report a fault, and wait before the next try."""
        first_s, most_s = limits.CONNECTOR_RETRY_S
        pause_s = min(first_s * 2 ** min(self._faults, 10), most_s)
        self._faults += 1
        if fault.is_lasting:
            pause_s = limits.CONNECTOR_STOPPED_RETRY_S
        detail = fault.detail.replace("\0", "")[: limits.CONNECTOR_DETAIL_CHARS_MAX]
        state = "stopped" if fault.is_lasting else "retrying"
        throttled.warning("connector_held_up", connector=self.definition.id, error=fault.code)
        await self._note(self.report._replace(state=state, error=fault.code, detail=detail))
        await self._rest(pause_s)

    async def _rest(self, seconds: float) -> None:
        await wait_until_set(self._stopping, seconds)

    async def _note(self, found: ConnectorReport) -> None:
        """Report a new state at once; a lag waits for the reports of all."""
        before, self.report = self.report, found
        if before[:4] == found[:4]:
            return
        try:
            async with reading(self._context.pool) as connection:
                await report(connection, [found])
        except (psycopg.Error, EventHubError):
            throttled.info("connector_not_reported", connector=self.definition.id)

    async def _read_on(self) -> bool:
        """Read and append until `stop`; return False if the connector was deleted."""
        kind = KINDS[self.definition.kind]
        async with kind.open(self._spec()) as source:
            position = await self._position()
            if position is None:
                return False
            if not position:
                start = await source.start()
                await self._store(Advance(*self._own, "", start), [], [])
                position = start
            lag_at_s = 0.0
            while not self._stopping.is_set():
                now_s = asyncio.get_running_loop().time()
                if now_s >= lag_at_s:
                    lag = await source.lag(position)
                    await self._note(ConnectorReport(self.definition.id, "running", lag=lag))
                    lag_at_s = now_s + limits.CONNECTOR_REPORT_S
                position = await self._next(source, position)
                self._faults = 0
        return True

    @property
    def _own(self) -> tuple[int, str]:
        return self.definition.id, self.definition.version

    def _spec(self) -> InputSpec:
        kind = KINDS[self.definition.kind]
        try:
            url = self._context.keyring.unseal(self.definition.sealed).decode()
        except Unsealable:
            text = "The URL was encrypted under another EVENTHUB_SECRET_KEY; set it again."
            raise ConnectorFault("key_lost", text, is_lasting=True) from None
        settings = parse_settings(kind, orjson.loads(self.definition.settings))
        addresses = self._context.addresses.of_zone(self.definition.emits.zone)
        return InputSpec(self.definition.id, url, settings, addresses)

    async def _position(self) -> str | None:
        async with reading(self._context.pool) as connection:
            return await position_of(connection, self.definition.id)

    async def _next(self, source: ConnectorInput, position: str) -> str:
        """Append the events of the next rows; return the position after them."""
        batch = await source.read(position)
        if batch.lost:
            await self._pass(Advance(*self._own, position, batch.position), batch.lost)
            return batch.position
        if not batch.rows:
            if batch.position:
                await self._store(Advance(*self._own, position, batch.position), [], [])
            return batch.position or position
        info = await self._stream()
        checked = await self._check(info, batch.rows)
        if checked.drafts and not await self._spend(info, len(checked.drafts)):
            return position
        after = batch.rows[checked.rows - 1].position
        rows, refused = checked.rows, len(checked.refused)
        step = Advance(*self._own, position, after, rows, refused)
        announced = [self._refusal(one) for one in checked.refused]
        appended = await self._store(step, checked.drafts, announced)
        self._count(appended[: len(checked.drafts)], refused)
        if refused:
            await self._rest(refused / limits.CONNECTOR_REFUSALS_PER_S)
        return after

    async def _pass(self, step: Advance, lost: Sequence[LostRows]) -> None:
        """Pass rows that are gone, and announce them. Raises ConnectorFault if the connector
        stops at them.
        """
        if self.definition.on_refusal == "stop":
            raise loss(lost)
        await self._store(step, [], [self._loss(one) for one in lost])
        count = sum(one.last - one.first + 1 for one in lost)
        metrics.CONNECTOR_ROWS.labels(kind=self.definition.kind, outcome="lost").inc(count)

    async def _stream(self) -> StreamInfo:
        """Return the stream. Raises UnknownStream, StreamDeleting, ConnectorFault."""
        name = self.definition.emits.stream
        principal = self.definition.principal()
        info = await self._context.services.authorizer.stream(principal, name)
        if info.deletes_at_us is not None:
            raise StreamDeleting.of(name, info.deletes_at_us)
        if info.durability == "transient":
            text = "The stream is transient: it shares no transaction with the position."
            raise ConnectorFault("transient_stream", text, is_lasting=True)
        return info

    async def _check(self, info: StreamInfo, rows: Sequence[InputRow]) -> _Checked:
        """Make events of rows: of all, or of those before the first that is none, if the connector
        stops there. Raises ConnectorFault if that is the first.
        """
        stops = self.definition.on_refusal == "stop"
        events, refused = await self._mapped(rows, stops=stops)
        if stops:
            bad, drafts = await self._check_events(info, events)
            if bad is not None:
                refused = [_Refused(events[len(drafts)][0], bad)]
            if refused and not drafts:
                raise refusal(*refused[0])
            return _Checked(len(drafts), drafts, [])
        drafts = []
        while events:
            bad, found = await self._check_events(info, events)
            drafts += found
            if bad is None:
                break
            refused.append(_Refused(events[len(found)][0], bad))
            events = events[len(found) + 1 :]
        return _Checked(len(rows), drafts, refused)

    async def _mapped(
        self, rows: Sequence[InputRow], *, stops: bool
    ) -> tuple[list[tuple[InputRow, EventIn]], list[_Refused]]:
        """Apply the map to rows, up to the first that it makes no event of if `stops`."""
        kind = KINDS[self.definition.kind]
        own = parse_map(orjson.loads(self.definition.mapping))
        mapped = RowMap(self.definition.name, own, kind.usual)
        events: list[tuple[InputRow, EventIn]] = []
        refused: list[_Refused] = []
        for index, row in enumerate(rows):
            if index % _ROWS_IN_A_ROW == _ROWS_IN_A_ROW - 1:
                await asyncio.sleep(0)
            try:
                events.append((row, event_of_row(mapped, row)))
            except EventHubError as error:
                refused.append(_Refused(row, error))
                if stops:
                    break
        return events, refused

    async def _check_events(
        self, info: StreamInfo, events: Sequence[tuple[InputRow, EventIn]]
    ) -> tuple[EventHubError | None, list[Draft]]:
        """Return the drafts up to the first event that is refused, and its error."""
        services, sender = self._context.services, Sender(self.definition.principal())
        given = [event for _, event in events]
        try:
            return None, (await checked_drafts(services, sender, info, given)).drafts
        except EventHubError as error:
            if error.index is None or not _is_of_row(error):
                raise
            before = given[: error.index]
            error.index = None
            return error, (await checked_drafts(services, sender, info, before)).drafts

    async def _spend(self, info: StreamInfo, count: int) -> bool:
        """Spend the quotas of the client; wait while a rate is used up. Return False if it stops
        meanwhile. Raises ZoneStorageFull.
        """
        principal = self.definition.principal()
        while not self._stopping.is_set():
            try:
                await require_allowed(self._context.services, principal, info, count)
            except TooManyRequests as error:
                held_up = self.report._replace(
                    state="retrying", error=error.code, detail=error.message
                )
                await self._note(held_up)
                await self._rest(error.retry_after_s or 1)
                continue
            if self.report.error:
                await self._note(self.report._replace(state="running", error="", detail=""))
            return True
        return False

    async def _store(
        self, step: Advance, drafts: Sequence[Draft], announced: Sequence[Announcement]
    ) -> list[Appended]:
        """Move the position and append in one transaction. Raises _Superseded, EventHubError."""
        everything = [*drafts, *drafts_of(self.definition.emits.zone, announced)]
        appended: list[Appended] = []
        try:
            async with reading(self._context.pool) as connection:
                async with connection.transaction():
                    if not await advance(connection, step):
                        raise _Superseded
                    if everything:
                        appended = await append_whole(connection, everything)
                heads = {one.stream_id: one.sequence for one in appended if not one.duplicate}
                if heads:
                    await connection.execute(append.SQL["notify"], (append.heads_text(heads),))
        except psycopg.Error as error:
            raise DatabaseUnavailable from error
        return appended

    def _refusal(self, refused: _Refused) -> Announcement:
        row, error = refused.row, refused.error
        content = (row.document or b"").decode()[: limits.CONNECTOR_REFUSED_CHARS_MAX]
        attributes = {
            **self._named(),
            "row": row.name[: limits.NAME_CHARS_MAX],
            "code": error.code,
            "field": error.field,
            "detail": error.message[: limits.CONNECTOR_DETAIL_CHARS_MAX],
            "content": content,
        }
        return Announcement("connector.row_refused", attributes)

    def _loss(self, lost: LostRows) -> Announcement:
        return Announcement("connector.rows_lost", {**self._named(), **lost._asdict()})

    def _named(self) -> dict[str, Any]:
        """Return the attributes that every event about the connector has."""
        own = self.definition
        return {
            "client": own.emits.client,
            "connector": own.id,
            "name": own.name,
            "stream": own.emits.stream,
        }

    def _count(self, appended: Sequence[Appended], refused: int) -> None:
        repeated = sum(one.duplicate for one in appended)
        stored = len(appended) - repeated
        counts = (("stored", stored), ("repeated", repeated), ("refused", refused))
        for outcome, count in counts:
            if count:
                labels = {"kind": self.definition.kind, "outcome": outcome}
                metrics.CONNECTOR_ROWS.labels(**labels).inc(count)


def _is_of_row(error: EventHubError) -> bool:
    """Return whether an error says that an event is not accepted, and not that it has to wait."""
    return 400 <= error.status < 500 and not isinstance(error, TooManyRequests)
