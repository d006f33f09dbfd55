"""The folders of runs: <data>/jobs/<job>/<run>/, what is in one, and how it is made and cleared.
Plain module.

A run's result comes into sight by a rename, after all of it is on the disk. It counts only while
the run's row says that it has completed and that its result is kept; what is left of any other run
is removed.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from sparkjobs.job_spec import NAME as ORDER

ROOT = "jobs"


class RunFolder(NamedTuple):
    """Of one run; absolute."""

    root: Path

    @property
    def order(self) -> Path:
        return self.work / ORDER

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

    def make(self) -> None:
        """Empty, but for the folders that a run writes into."""
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in (self.inputs, self.work, self.unfinished):
            folder.mkdir(parents=True)
        self.log.touch()

    def publish(self) -> None:
        """The result comes into sight, and stays whatever the machine does. Raises OSError."""
        for folder in (self.unfinished, *_folders(self.unfinished)):
            _sync(folder)
        self.unfinished.rename(self.result)
        for folder in (self.root, *self.root.parents[:3]):
            _sync(folder)

    def result_bytes(self) -> int:
        """Of all files of the result. Raises OSError."""
        return sum(path.stat().st_size for path in self.result.rglob("*") if path.is_file())

    def clear(self, *, result: bool) -> None:
        """Remove what a run needs only while it is under way; `result`: and its result."""
        for folder in (self.inputs, self.work, self.unfinished, *((self.result,) * result)):
            shutil.rmtree(folder, ignore_errors=True)


def folder_of(data: Path, job: str, run: int) -> RunFolder:
    return RunFolder(data.resolve() / ROOT / job / f"{run:08}")


def clear_leftovers(data: Path, job: str, kept: Mapping[int, bool]) -> None:
    """Of all runs of a job of which none is under way: folders of runs that are not kept go whole,
    of the others what is left of their work, and results that are not kept. `kept`: the runs, and
    whether their results are, too.
    """
    try:
        found = [path for path in (data / ROOT / job).iterdir() if path.name.isdecimal()]
    except FileNotFoundError:
        return
    for path in found:
        run = int(path.name)
        if run in kept:
            RunFolder(path).clear(result=not kept[run])
        else:
            shutil.rmtree(path, ignore_errors=True)


def _folders(root: Path) -> Iterable[Path]:
    return [path for path in root.rglob("*") if path.is_dir()]


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
