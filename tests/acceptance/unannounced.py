"""Processes of a hub that learn late of what others append. Plain."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tests.live import LiveHub


@contextmanager
def nothing_announced(hub: LiveHub) -> Iterator[None]:
    """Let the hub's processes learn of nothing that others append inside the block."""
    found = "SELECT pid FROM pg_stat_activity WHERE application_name = 'eventhub heads'"
    pids = [pid for (pid,) in hub.sql(f"{found} AND datname = current_database()")]
    assert len(pids) >= len(hub.web)
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
