"""The whole hub with its demo, as `make run` starts it, seen through its public doors."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path

from eventhub import limits
from eventhub.client.remote import HubClient
from eventhub.client.types import Cursor, Delivered
from tests.integration.up_process import HOME, Hub, wait_until

FIRST_EVENT_S_MAX = 30.0
SECOND_START_S_MAX = 15.0


def credentials(hub: Hub) -> dict[str, dict[str, str]]:
    path = hub.data / "credentials.json"
    wait_until(path.exists, "the credentials")
    found: dict[str, dict[str, str]] = json.loads(path.read_text())
    return found


async def next_event(hub: Hub, start: Cursor | str) -> Delivered:
    async with HubClient(hub.url, credentials(hub)["client"]["key"]) as client:
        async for delivered in client.listen("host", start=start):  # type: ignore[arg-type]
            return delivered
    raise AssertionError("the listen ended")


def first_event(hub: Hub, start: Cursor | str = "now") -> Delivered:
    return asyncio.run(asyncio.wait_for(next_event(hub, start), FIRST_EVENT_S_MAX))


def test_demo_is_heard_and_continues_after_each_way_of_stopping(tmp_path: Path) -> None:
    began = time.monotonic()
    script = HOME / "manage.py"
    hub = Hub(tmp_path / "data", "--demo", script=script).wait_ready()
    before = first_event(hub)
    assert time.monotonic() - began < FIRST_EVENT_S_MAX
    assert before.event["domain"] == "host"
    logins = credentials(hub)
    assert (hub.data / "credentials.json").stat().st_mode & 0o777 == 0o600
    hub.interrupt()
    assert hub.wait_end(limits.STOP_TIMEOUT_S_MAX) == 0
    assert hub.leftovers() == []

    for number in (signal.SIGKILL, signal.SIGINT):
        began = time.monotonic()
        hub = Hub(hub.data, "--demo", script=script).wait_ready()
        assert time.monotonic() - began < SECOND_START_S_MAX
        assert credentials(hub) == logins
        after = first_event(hub, Cursor(before.segment, before.sequence))
        assert after.sequence == before.sequence + 1
        os.kill(hub.process.pid, number)
        hub.wait_end(limits.STOP_TIMEOUT_S_MAX)
        hub.wait_gone()
