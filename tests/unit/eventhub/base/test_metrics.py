"""Where the metrics of a process are kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eventhub.supervisor.hub import HOME

COUNTED = "from eventhub.base import metrics; metrics.APPENDED.inc()"


@pytest.mark.parametrize(("folder", "files"), [("", False), (".", True)])
def test_a_folder_without_a_name_is_none(tmp_path: Path, folder: str, files: bool) -> None:
    """The library took it for the current folder, and left files there for every process."""
    env = {**os.environ, "PYTHONPATH": str(HOME), "PROMETHEUS_MULTIPROC_DIR": folder}
    subprocess.run([sys.executable, "-c", COUNTED], cwd=tmp_path, env=env, check=True)
    assert bool(list(tmp_path.iterdir())) == files
