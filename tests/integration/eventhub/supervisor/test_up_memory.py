"""The memory of a hub at rest."""

from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests import prepared
from tests.integration.up_process import HOME, Hub, wait_until

HUB_MB_MAX = 700  # in all; 0.6 GB when it was measured, 0.9 GB without sharing
MEMBERS = "SELECT count(*) FROM members WHERE joined_at IS NOT NULL"
JOINED = 6  # two of each kind


@pytest.mark.slow
def test_the_processes_of_a_hub_at_rest_share_their_memory(tmp_path: Path) -> None:
    """Each had imported the same modules by itself, 60 to 110 MB."""
    prepared.fill(tmp_path / "data")
    hub = Hub(tmp_path / "data", script=HOME / "manage.py").wait_ready()
    try:
        wait_until(lambda: hub.execute(MEMBERS) == [(JOINED,)], "all processes to join")
        every = psutil.Process(hub.process.pid).children(recursive=True)
        total_mb = (sum(map(share, every)) + share(psutil.Process(hub.process.pid))) / 1e6
        assert total_mb < HUB_MB_MAX
        for name in ("web-1", "web-2", "forward-1", "worker-1", "beat"):
            info = hub.part(name).memory_full_info()
            assert info.uss < info.rss / 2, name
    finally:
        hub.interrupt()
        assert hub.wait_end() == 0, hub.text


def share(process: psutil.Process) -> int:
    """Return the memory of a process, 0 if it has ended, as that of a closed connection does."""
    with suppress(psutil.NoSuchProcess):
        return int(process.memory_full_info().pss)
    return 0
