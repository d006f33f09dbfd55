"""The short version of `python -m tests.chaos --soak`: slow readers, callbacks, and the memory of
all processes; and its judge of memory on curves of which the answer is known."""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.chaos.hub import Crew
from tests.chaos.memory import MIB, Growth, Sample
from tests.chaos.soak import CREW, parts_of, soak, too_fast, unwatched


def curve(name: str, mib_per_minute: float) -> Growth:
    samples = [Sample(at, int((100 + mib_per_minute * at / 60) * MIB)) for at in range(0, 600, 5)]
    return Growth(f"{name} [1]", samples, mib_per_minute)


def test_a_worker_that_grows_and_one_that_did_not_live_are_found() -> None:
    parts = parts_of(CREW)
    level = [curve(part, 0.2) for part in parts]
    assert too_fast(level) == unwatched(level, parts) == []
    [leak] = too_fast([*level[:-1], curve("worker-2", 1.6)])
    assert leak == "worker-2 [1] grows by 1.60 MiB a minute"
    died = curve("worker-2", 1.6)._replace(slope=None)
    assert unwatched([*level[:-1], died], parts) == ["worker-2 did not run all the time"]


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_short_soak_makes_all_callbacks_and_looks_at_every_process() -> None:
    data = Path(tempfile.mkdtemp(prefix="eventhub-soak-", dir="/tmp"))  # sockets' names are short
    options = argparse.Namespace(soak=4.0, rate=150.0, seed=3, json=data / "found.json")
    try:
        await soak(options, data, Crew(web=1, forwarders=1, workers=1))
        found: dict[str, Any] = orjson.loads(options.json.read_bytes())
    finally:
        shutil.rmtree(data, ignore_errors=True)
    # so early a process still grows, and a busy machine is slow
    wrong = [
        each for each in found["problems"] if "MiB a minute" not in each and "waited" not in each
    ]
    assert wrong == []
    assert found["delivered"] > 300
    assert found["answers"].get("500", 0) + found["answers"].get("0", 0) > 0
