"""The short version of `python -m tests.chaos upgrade`: to the next release and back."""

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.chaos.upgrade.run import Drill

RATE = 20.0  # events offered per second; most of the time processes start


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.timeout(400)
async def test_an_upgrade_and_its_way_back_cost_reconnections_alone() -> None:
    folder = Path(tempfile.mkdtemp(prefix="eventhub-chaos-", dir="/tmp"))
    try:
        async with Drill.open(folder, rate=RATE, seed=3, events=2_000) as drill:
            await drill.go(seconds=0.5)
            summary = drill.summary()
        assert drill.problems == []
        assert summary["acknowledged"] == summary["offered"] > 0
        assert summary["delivered"] == summary["expected"] > 0
        assert summary["seen"] > 0
        assert summary["reconnects_of_readers"] > 0  # web processes were replaced
    finally:
        shutil.rmtree(folder, ignore_errors=True)
