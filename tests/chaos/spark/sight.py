"""What is visible of jobs and indexes: checked continuously, it must always be whole."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from registrations.match_index.epochs.folder import index_root
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged
from registrations.match_index.format.index import open_base
from sparkjobs.result import StoredResult, read_result
from sparkjobs.runs.folders import ROOT

LOOK_S = 0.1
# what is another one at every moment: an index's number, and how large the database's files are
_MOVING = ("epoch", "freed_bytes", "partitions.csv")


@contextmanager
def watched(data: Path, stream_id: int) -> Iterator[list[str]]:
    """Check until the block ends; yield the problems, each once."""
    over, problems = threading.Event(), list[str]()
    known: set[Path] = set()

    def look() -> None:
        while not over.wait(LOOK_S):
            for problem in (*_results(data, known), *_index(data, stream_id)):
                if problem not in problems:
                    problems.append(problem)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield problems
    finally:
        over.set()
        thread.join()


def leftovers(data: Path, job: str) -> list[str]:
    """Return remains of a job's finished runs that should not exist. The schedule may have started
    other runs.
    """
    folders = [path for path in (data / ROOT / job).glob("*/*") if path.is_dir()]
    return [str(path.relative_to(data)) for path in folders if path.name != "result"]


def fingerprint(stored: StoredResult, folder: Path) -> dict[str, Any]:
    """Return what must be equal for every run: figures, and tables for people."""
    found: dict[str, Any] = {n: v for n, v in stored.result.figures.items() if n not in _MOVING}
    for file in stored.files:
        if file.name.endswith(".csv") and file.name not in _MOVING:
            found[file.name] = hashlib.sha256((folder / file.name).read_bytes()).hexdigest()
    return found


def postings(data: Path, stream_id: int) -> list[str]:
    """Return digests of a stream's index, read whole."""
    base = open_base(index_root(data, stream_id))
    base.verify()
    return [hashlib.sha256(shard.path.read_bytes()).hexdigest() for shard in base.shards]


def _results(data: Path, known: set[Path]) -> Iterator[str]:
    """Yield the results that became visible since."""
    for folder in (data / ROOT).glob("*/*/result"):
        if folder in known:
            continue
        try:
            stored = read_result(folder)
            for file in stored.files:
                if hashlib.sha256((folder / file.name).read_bytes()).hexdigest() != file.sha256:
                    yield f"{folder}: {file.name} is not what the result says"
            known.add(folder)
        except (OSError, ValueError, TypeError, KeyError) as error:
            if folder.exists():
                yield f"{folder} is not whole: {json.dumps(str(error))}"


def _index(data: Path, stream_id: int) -> Iterator[str]:
    try:
        open_base(index_root(data, stream_id)).verify()
    except IndexAbsent:
        return
    except (IndexDamaged, OSError) as error:
        yield f"the index is not whole: {error}"
