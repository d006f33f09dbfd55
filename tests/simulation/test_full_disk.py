"""The short version of `python -m tests.chaos disk`: a disk that holds data and WAL is filled until
PostgreSQL panics, and the hub goes on by itself when space returns.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.chaos.disk import MountRefused, scenario

OPTIONS = argparse.Namespace(disk_mib=300, rate=500.0, load=2.0, full=2.0, seed=7, json=None)


@pytest.mark.timeout(300)
async def test_a_full_disk_refuses_loses_nothing_and_needs_no_hand() -> None:
    data = Path(tempfile.mkdtemp(prefix="eventhub-disk-", dir="/tmp"))  # sockets' names are short
    try:
        found = await scenario(OPTIONS, data)
    except MountRefused as refused:
        pytest.skip(f"this machine lets us mount nothing: {refused}")
    finally:
        shutil.rmtree(data, ignore_errors=True)
    assert found.problems == []
    assert found.refused_507 > 0
    assert found.postgres_ended >= 1
    [warning] = found.warnings
    assert warning["duration_s"] >= OPTIONS.full
