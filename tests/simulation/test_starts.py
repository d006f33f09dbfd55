"""The short version of `python -m tests.chaos starts`: what is left of a hub, and who has its
process ids by then, is no obstacle to the next start.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.chaos.hub import LOG_CREW
from tests.chaos.starts.run import scenario

OPTIONS = argparse.Namespace(
    times=1,
    load=0,
    rate=300.0,
    seconds=1.0,
    patience=90.0,
    seed=9,
    only=["kill-all-but-backends"],
)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_hub_starts_after_any_leftovers_and_has_all_that_it_acknowledged() -> None:
    data = Path(tempfile.mkdtemp(prefix="eventhub-starts-", dir="/tmp"))  # sockets' names are short
    try:
        starts, problems, acknowledged = await scenario(OPTIONS, data, LOG_CREW)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    assert problems == []
    assert len(starts) == OPTIONS.times
    assert any("postmaster.pid" in file for start in starts for file in start.occupied)
    assert acknowledged > 0
