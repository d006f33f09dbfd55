"""Other matchers of event patterns, measured beside the index's engines: event-ruler, whose jars
EVENTHUB_BENCH_RULER names as a class path, and quamina, whose sources EVENTHUB_BENCH_QUAMINA names.
Both parse each event from JSON. Plain.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
TIMEOUT_S = 60


class Peer(NamedTuple):
    """A program that takes a file of rules and one of events."""

    words: list[str]


class Answer(NamedTuple):
    """The least µs of processor time for an event, and the rules that each event matched."""

    us: float
    found: list[set[int]]


def peers(folder: Path) -> dict[str, Peer]:
    """Return those that can be had; programs are built in `folder`."""
    found = {}
    if jars := os.environ.get("EVENTHUB_BENCH_RULER"):
        found["event-ruler"] = Peer(["java", "-Xmx4g", "-cp", jars, str(FOLDER / "Ruler.java")])
    if sources := os.environ.get("EVENTHUB_BENCH_QUAMINA"):
        found["quamina"] = Peer([str(_built(folder, Path(sources)))])
    return found


def _built(folder: Path, sources: Path) -> Path:
    module = "quamina.net/go/quamina/v2"
    (folder / "go.mod").write_text(
        f"module bench\ngo 1.22.0\nrequire {module} v2.0.0\nreplace {module} => {sources}\n"
    )
    shutil.copy(FOLDER / "quamina.go", folder)
    subprocess.run(["go", "build", "-o", "quamina", "quamina.go"], cwd=folder, check=True)
    return folder / "quamina"


def asked(peer: Peer, rules: Sequence[Any], events: Sequence[Any]) -> Answer | None:
    """Return what a peer took and found, or None if it refuses the rules or takes minutes."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("rules", "events")]
        for file, documents in zip(files, (rules, events), strict=True):
            file.write_text("".join(f"{json.dumps(each)}\n" for each in documents))
        words = [*peer.words, *map(str, files)]
        try:
            run = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return None
    if run.returncode:
        return None
    us, found = json.loads(run.stdout)
    return Answer(us, [set(each) for each in found])
