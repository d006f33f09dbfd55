"""The instructions of one run: a JSON file that the hub writes for the driver. Plain module."""

import json
from pathlib import Path
from typing import Any, NamedTuple

NAME = "spec.json"
VERSION = 1  # of the spec and of the input tables; a driver refuses any other


class JobSpec(NamedTuple):
    """One run of a job. Folders are absolute, and the same for driver and executors."""

    job: str
    run: int
    params: dict[str, Any]  # validated by the hub
    inputs: str  # a folder of Parquet files, one folder per table (tables.py)
    work: str  # scratch space between stages; deleted when the run ends
    result: str  # where to write; published only after the job has completed
    archive_url: str  # an fsspec URL of the sealed segments; "": no archive
    now_us: int  # time of the inputs' snapshot
    version: int = VERSION

    def table(self, name: str) -> str:
        """Return the folder of an input table."""
        return f"{self.inputs}/{name}"


def write_spec(folder: Path, spec: JobSpec) -> Path:
    """Write a spec that only this user may read: the archive's URL may contain credentials."""
    path = folder / NAME
    path.touch(mode=0o600)
    path.write_text(json.dumps(spec._asdict(), indent=1) + "\n")
    return path


def read_spec(path: Path) -> JobSpec:
    """Read a spec; fields unknown to this driver are ignored.

    Raises OSError, ValueError, TypeError.
    """
    fields = json.loads(path.read_text())
    if fields["version"] != VERSION:
        raise ValueError(f"The spec has version {fields['version']}; expected {VERSION}.")
    return JobSpec(**{name: fields[name] for name in JobSpec._fields if name in fields})
