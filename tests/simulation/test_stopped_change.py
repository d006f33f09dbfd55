"""A web process that is stopped in the middle of a change does not keep others from emitting.

The story: the heads of `system` and of the streams of a registration are held from the barrier to
the commit, and a process that was stopped there kept them for as long as it was.
"""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from signal import SIGCONT, SIGSTOP

import psycopg

from eventhub.base import limits
from tests.busy import stretched
from tests.chaos.until import until_true
from tests.live import LiveHub, LiveZone

PATIENCE_S = 60.0
WAITS = (  # for the table, so it has the head of `system`
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    " AND wait_event = 'relation' AND application_name = 'eventhub django'"
    " AND query LIKE '%%append_events%%' AND datname = current_database()"
)
STREAM = (
    "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id WHERE z.name = %s AND s.name = %s"
)
HEAD = f"SELECT 1 FROM heads h WHERE stream_id = ({STREAM}) FOR UPDATE OF h NOWAIT"
HEADS = f"SELECT 1 FROM heads h WHERE stream_id IN (1, ({STREAM})) FOR UPDATE OF h NOWAIT"


async def test_heads_are_free_soon_when_all_that_changed_registrations_is_stopped(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")

    async def waits() -> bool:
        # other appends wait, too, but not those of the management API
        return bool(hub.sql(WAITS)[0][0]) and not await free(HEAD)

    async def free(heads: str = HEADS) -> bool:
        try:
            return bool(hub.sql(heads, zone.name, "orders"))
        except psycopg.errors.LockNotAvailable:
            return False

    pids = [web.pid for web in hub.web]
    with ThreadPoolExecutor() as pool, psycopg.connect(hub.database_url) as holder:
        holder.execute("LOCK TABLE events IN SHARE MODE")
        body = {"streams": ["orders"]}
        asked = pool.submit(hub.call, "POST", "/v1/registrations", body, key=zone.admin)
        await until_true(waits, "the change to wait for its announcement", PATIENCE_S)
        try:
            for pid in pids:
                os.kill(pid, SIGSTOP)
            holder.commit()
            began = time.monotonic()
            await until_true(free, "the heads", PATIENCE_S)
            took_s = time.monotonic() - began
        finally:
            for pid in pids:
                os.kill(pid, SIGCONT)
        answer = await asyncio.to_thread(asked.result)
    answer.refused(503, "database_unavailable")
    assert took_s < limits.TRANSACTION_IDLE_S_MAX + stretched(1.5)
    page = hub.call("GET", "/v1/registrations", key=zone.admin)
    assert page.json["items"] == []
