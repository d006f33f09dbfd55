"""The whole hub with its demo, as `make run` starts it, seen through its public doors."""

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventhub import limits
from eventhub.client.remote import HubClient
from eventhub.client.types import Cursor, Delivered
from tests.integration.up_process import HOME, Hub

FIRST_EVENT_PATIENCE_S = 60.0


def credentials(hub: Hub) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((hub.data / "credentials.json").read_text())
    return found


async def next_event(hub: Hub, start: Cursor | str) -> Delivered:
    async with HubClient(hub.url, credentials(hub)["client"]["key"]) as client:
        async for delivered in client.listen("host", start=start):  # type: ignore[arg-type]
            return delivered
    raise AssertionError("the listen ended")


def first_event(hub: Hub, start: Cursor | str = "now") -> Delivered:
    return asyncio.run(asyncio.wait_for(next_event(hub, start), FIRST_EVENT_PATIENCE_S))


@contextmanager
def demo_hub(data: Path, ended_by: int) -> Iterator[Hub]:
    """Ready, ended by a signal, and then gone without a trace."""
    hub = Hub(data, "--demo", script=HOME / "manage.py")
    try:
        yield hub.wait_ready()
    finally:
        hub.process.send_signal(ended_by)
        hub.wait_end(limits.STOP_TIMEOUT_S_MAX)
        hub.wait_gone()


def test_demo_is_heard_and_continues_after_each_way_of_stopping(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with demo_hub(data, signal.SIGINT) as hub:
        before = first_event(hub)
        assert before.event["domain"] == "host"
        logins = credentials(hub)
        assert (data / "credentials.json").stat().st_mode & 0o777 == 0o600
    assert hub.process.returncode == 0
    for ended_by in (signal.SIGKILL, signal.SIGINT):
        with demo_hub(data, ended_by) as hub:
            assert credentials(hub) == logins
            after = first_event(hub, Cursor(before.segment, before.sequence))
            assert after.sequence == before.sequence + 1
