"""What a job is told: a file of JSON that the hub writes into the run's folder. Plain module."""

import json
from pathlib import Path
from typing import Any, NamedTuple

NAME = "order.json"
VERSION = 1  # of the order and of the inputs' tables: a driver refuses another one


class JobSpec(NamedTuple):
    """One run of a job. Folders are absolute, and the same for driver and executors."""

    job: str
    run: int
    params: dict[str, Any]  # as the hub has checked them
    inputs: str  # the folder of Parquet files, a folder a table (tables.py)
    work: str  # a folder for whatever the job keeps between its stages; gone when it ends
    result: str  # the folder to write into; in nobody's sight until the job has ended well
    archive_url: str  # of fsspec, where sealed segments are; "": none
    now_us: int  # the moment of the inputs' snapshot
    version: int = VERSION

    def table(self, name: str) -> str:
        """The folder of one table of the inputs."""
        return f"{self.inputs}/{name}"


def write_spec(folder: Path, order: JobSpec) -> Path:
    """Only this user may read it: the archive's URL may have credentials."""
    path = folder / NAME
    path.touch(mode=0o600)
    path.write_text(json.dumps(order._asdict(), indent=1) + "\n")
    return path


def read_spec(path: Path) -> JobSpec:
    """What is new to this driver is left out. Raises OSError, ValueError, TypeError."""
    told = json.loads(path.read_text())
    if told["version"] != VERSION:
        raise ValueError(f"The order is of version {told['version']}, not of {VERSION}.")
    return JobSpec(**{name: told[name] for name in JobSpec._fields if name in told})
