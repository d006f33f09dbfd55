"""The result of a job: files in one folder, and a manifest of them, written last. Plain module.

The hub reads the folder only after the driver has succeeded, and then renames it into place.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

NAME = "result.json"
Verdict = Literal["", "ok", "problems"]


class JobResult(NamedTuple):
    """A job's findings. `verdict` is "" for jobs that pass no judgement."""

    summary: str  # one sentence
    figures: dict[str, int | float | str | None]
    verdict: Verdict = ""
    about: Mapping[str, str] = {}  # file name -> description
    details: Mapping[str, Any] = {}  # for the console; the job bounds their size


class File(NamedTuple):
    """A file of a result; `name` is its path below the result's folder."""

    name: str
    bytes: int
    sha256: str
    about: str


class StoredResult(NamedTuple):
    """A result on disk."""

    result: JobResult
    files: tuple[File, ...]


def write_result(folder: Path, result: JobResult) -> StoredResult:
    """Write the manifest of the files in a folder, and fsync all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and _is_listed(path))
    files = tuple(_file(folder, path, result.about) for path in paths)
    stored = {**result._asdict(), "files": [file._asdict() for file in files]}
    with (folder / NAME).open("w") as out:
        out.write(json.dumps(stored, indent=1) + "\n")
        out.flush()
        os.fsync(out.fileno())
    return StoredResult(result, files)


def read_result(folder: Path) -> StoredResult:
    """Read a result's manifest. Raises OSError, ValueError, TypeError, KeyError."""
    fields = json.loads((folder / NAME).read_text())
    files = tuple(File(**file) for file in fields.pop("files"))
    return StoredResult(JobResult(**fields), files)


def _is_listed(path: Path) -> bool:
    """Return whether a file belongs to the result; Spark's markers and checksums do not."""
    return path.name != NAME and not path.name.startswith((".", "_"))


def _file(folder: Path, path: Path, about: Mapping[str, str]) -> File:
    name = path.relative_to(folder).as_posix()
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        os.fsync(content.fileno())
    description = about.get(name) or about.get(name.partition("/")[0], "")
    return File(name, path.stat().st_size, digest, description)
