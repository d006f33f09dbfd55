"""The process of `manage.py connect`: runs the enabled connectors while it leads. SQL module.

Any number of processes may run; one at a time leads. Another one takes over within seconds, and if
the former one only was slow, each position still moves once (running.py).
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import LiteralString, NamedTuple

import psycopg

from eventhub.access.authorizer import Authorizer
from eventhub.base import limits, metrics
from eventhub.base.clock import SystemClock
from eventhub.base.errors import EventHubError
from eventhub.base.event_loop import run_forever
from eventhub.base.garbage import freeze_loaded
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog.log import Log
from eventhub.http.emit import EmitServices
from eventhub.postgresql.connections import (
    CONNECTION_ERRORS,
    Connection,
    reading_pool,
    wait_for_notify,
)
from eventhub.postgresql.leadership import leading_session, try_lead
from eventhub.types.registry import TypeRegistry
from registrations.connectors.kinds.registry import KINDS
from registrations.connectors.running import ConnectorContext, RunningConnector
from registrations.connectors.statements import (
    ConnectorDefinition,
    enabled_connectors,
    report,
)
from registrations.endpoints.addresses import AllowedAddresses
from registrations.endpoints.secrets import Keyring

log = get_logger(__name__)
throttled = ThrottledLog(log)
_NAME = "eventhub connectors"
_CHANNEL: LiteralString = "eventhub_connectors"  # as in the statement `notify`
_POOL_CONNECTIONS = 4  # transactions of the connectors at a time


class ConnectSettings(NamedTuple):
    """The settings of the process. `direct_url`: of the database itself, if the other is a
    pooler's; `secret_keys`: the present one first.
    """

    database_url: str
    direct_url: str
    secret_keys: Sequence[str]
    addresses: AllowedAddresses
    mark_url: str = ""


async def connect(settings: ConnectSettings, *, stop: asyncio.Event) -> None:
    """Run connectors until `stop` is set; then end their transactions under way."""
    freeze_loaded()
    leading = asyncio.create_task(run_forever("connectors", ConnectorLeader(settings).run))
    log.info("connectors_ready")
    await stop.wait()
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
    log.info("connectors_stopped")


class ConnectorLeader:
    """The connectors of one process, over one session of the hub's database."""

    def __init__(self, settings: ConnectSettings) -> None:
        self._settings = settings
        self._notified = False
        self._opened = AsyncExitStack()
        self._context: ConnectorContext | None = None
        self._running: dict[int, RunningConnector] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Run connectors while this process leads, until the session fails."""
        url = self._settings.direct_url or self._settings.database_url
        try:
            async with leading_session(url, _NAME) as connection:
                connection.add_notify_handler(lambda _: self._note())
                await connection.execute(f"LISTEN {_CHANNEL}")
                leads = False
                while True:
                    self._notified = False
                    leads = leads or await try_lead(connection, _NAME)
                    if leads:
                        await self._follow(connection)
                    if not self._notified:
                        await wait_for_notify(connection, limits.CONNECTOR_REPORT_S)
        except (EventHubError, psycopg.Error, *CONNECTION_ERRORS) as error:
            throttled.info("connectors_postponed", reason=type(error).__name__)
        finally:
            await self._end([*self._running])
            await self._close()
        await asyncio.sleep(limits.RETAIN_FAULT_PAUSE_S)

    def _note(self) -> None:
        self._notified = True

    async def _follow(self, connection: Connection) -> None:
        """Run what is enabled, by its present definition, and report."""
        found = {one.id: one for one in await enabled_connectors(connection)}
        ended = [
            id
            for id, one in self._running.items()
            if id not in found
            or found[id].version != one.definition.version
            or self._tasks[id].done()
        ]
        await self._end(ended)
        if not found:
            await self._close()
            self._measure()
            return
        context = self._context or await self._open()
        for id, definition in found.items():
            if id in self._running:
                self._running[id].definition = definition  # its quotas may be others
            else:
                self._start(context, definition)
        await report(connection, [one.report for one in self._running.values()])
        self._measure()

    def _start(self, context: ConnectorContext, definition: ConnectorDefinition) -> None:
        running = self._running[definition.id] = RunningConnector(context, definition)
        self._tasks[definition.id] = asyncio.create_task(running.run())

    async def _end(self, ids: Sequence[int]) -> None:
        """End connectors after their transactions under way; cancel those that take too long."""
        tasks = [self._tasks.pop(id) for id in ids]
        for id in ids:
            self._running.pop(id).stop()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=limits.CONNECTOR_STOP_S_MAX)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _open(self) -> ConnectorContext:
        self._context = await self._opened.enter_async_context(opened_context(self._settings))
        return self._context

    async def _close(self) -> None:
        if self._context is not None:
            self._context = None
            await self._opened.aclose()

    def _measure(self) -> None:
        states = Counter((one.definition.kind, one.report.state) for one in self._running.values())
        for kind in KINDS:
            lags = [
                one.report.lag or 0 for one in self._running.values() if one.definition.kind == kind
            ]
            metrics.CONNECTOR_LAG_ROWS.labels(kind=kind).set(max(lags, default=0))
            for state in ("starting", "running", "retrying", "stopped"):
                metrics.CONNECTORS.labels(kind=kind, state=state).set(states[kind, state])


@asynccontextmanager
async def opened_context(settings: ConnectSettings) -> AsyncIterator[ConnectorContext]:
    """Open what emits need: the log, the authorizer, the types; only while there are connectors."""
    async with (
        Log.open(
            database_url=settings.database_url,
            direct_url=settings.direct_url,
            mark_url=settings.mark_url,
        ) as hub_log,
        reading_pool(settings.database_url, "connectors", _POOL_CONNECTIONS) as pool,
    ):
        authorizer = Authorizer(hub_log, secret=settings.secret_keys[0], clock=SystemClock())
        types = TypeRegistry(hub_log)
        tasks = [
            asyncio.create_task(run_forever("authorizer", authorizer.run)),
            asyncio.create_task(run_forever("types", types.run)),
        ]
        services = EmitServices(hub_log, authorizer, types)
        keyring = Keyring(settings.secret_keys)
        try:
            yield ConnectorContext(services, pool, keyring, settings.addresses)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
