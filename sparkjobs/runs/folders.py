"""The folders of runs, <data>/jobs/<job>/<run>/: their contents, creation and clean-up.
Plain module.

A rename publishes a run's result after all of it is on disk. A result is valid only while the run's
row is completed and its result not deleted; the leftovers of any other run are removed.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sparkjobs.job_spec import NAME as SPEC

ROOT = "jobs"


class RunFolder(NamedTuple):
    """The absolute folder of one run."""

    root: Path

    @property
    def spec(self) -> Path:
        return self.work / SPEC

    @property
    def inputs(self) -> Path:
        return self.root / "inputs"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def log(self) -> Path:
        return self.root / "log.txt"

    @property
    def unfinished(self) -> Path:
        return self.root / "_unfinished"

    @property
    def result(self) -> Path:
        return self.root / "result"

    def create(self) -> None:
        """Create the folder again, with the empty folders that a run writes into."""
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in (self.inputs, self.work, self.unfinished):
            folder.mkdir(parents=True)
        self.log.touch()

    def publish(self) -> None:
        """Publish the result durably. Raises OSError."""
        for folder in (self.unfinished, *filter(Path.is_dir, self.unfinished.rglob("*"))):
            _sync(folder)
        self.unfinished.rename(self.result)
        for folder in (self.root, *self.root.parents[:3]):
            _sync(folder)

    def result_bytes(self) -> int:
        """Return the size of all files of the result. Raises OSError."""
        return sum(path.stat().st_size for path in self.result.rglob("*") if path.is_file())

    def clear(self, *, result: bool) -> None:
        """Remove what a run needs only while it runs, and, if `result` is set, its result."""
        for folder in (self.inputs, self.work, self.unfinished, *((self.result,) * result)):
            shutil.rmtree(folder, ignore_errors=True)


def folder_of(data: Path, job: str, run: int) -> RunFolder:
    return RunFolder(data.resolve() / ROOT / job / f"{run:08}")


def clear_leftovers(data: Path, job: str, retained: Mapping[int, bool]) -> None:
    """Remove, while no run of the job is running, the folders of runs that are not retained, and of
    the others their scratch space and unretained results. `retained`: run -> whether its result is
    retained.
    """
    try:
        found = [path for path in (data / ROOT / job).iterdir() if path.name.isdecimal()]
    except FileNotFoundError:
        return
    for path in found:
        run = int(path.name)
        if run in retained:
            RunFolder(path).clear(result=not retained[run])
        else:
            shutil.rmtree(path, ignore_errors=True)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
