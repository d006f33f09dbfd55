"""What a job leaves: files in the folder of its result, and one that says what they are, written
last. Plain module.

The hub looks at the folder only when the job has ended well; it renames it into sight then.
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
    """`verdict` is "" where a job judges nothing."""

    summary: str  # a sentence for people
    figures: dict[str, int | float | str | None]
    verdict: Verdict = ""
    about: Mapping[str, str] = {}  # of files, by name: what is in them
    details: Mapping[str, Any] = {}  # what screens show; bounded by the job


class File(NamedTuple):
    """A file of a result; `name` may be a path below its folder."""

    name: str
    bytes: int
    sha256: str
    about: str


class StoredResult(NamedTuple):
    """A result as it is on the disk."""

    result: JobResult
    files: tuple[File, ...]


def write_result(folder: Path, result: JobResult) -> StoredResult:
    """Say what is in the folder; all of it is on the disk then."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and _is_told(path))
    files = tuple(_file(folder, path, result.about) for path in paths)
    stored = {**result._asdict(), "files": [file._asdict() for file in files]}
    with (folder / NAME).open("w") as out:
        out.write(json.dumps(stored, indent=1) + "\n")
        out.flush()
        os.fsync(out.fileno())
    return StoredResult(result, files)


def read_result(folder: Path) -> StoredResult:
    """Raises OSError, ValueError, TypeError, KeyError."""
    fields = json.loads((folder / NAME).read_text())
    files = tuple(File(**file) for file in fields.pop("files"))
    return StoredResult(JobResult(**fields), files)


def _is_told(path: Path) -> bool:
    """Spark's marks and checksums are no results."""
    return path.name != NAME and not path.name.startswith((".", "_"))


def _file(folder: Path, path: Path, about: Mapping[str, str]) -> File:
    name = path.relative_to(folder).as_posix()
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        os.fsync(content.fileno())
    words = about.get(name) or about.get(name.partition("/")[0], "")
    return File(name, path.stat().st_size, digest, words)
