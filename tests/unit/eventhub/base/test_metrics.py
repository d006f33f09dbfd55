"""The folder in which a process stores its metrics."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eventhub.supervisor.hub import HOME

COUNTED = "from eventhub.base import metrics; metrics.APPENDED.inc()"


@pytest.mark.parametrize(("folder", "files"), [("", False), (".", True)])
def test_an_empty_folder_name_means_no_folder(tmp_path: Path, folder: str, files: bool) -> None:
    """The library took it for the current folder, where every process left files."""
    env = {**os.environ, "PYTHONPATH": str(HOME), "PROMETHEUS_MULTIPROC_DIR": folder}
    subprocess.run([sys.executable, "-c", COUNTED], cwd=tmp_path, env=env, check=True)
    assert bool(list(tmp_path.iterdir())) == files
