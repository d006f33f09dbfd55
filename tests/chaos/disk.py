"""The command `python -m tests.chaos disk`: a small disk with data and WAL is filled until
PostgreSQL panics, and emptied again, without any manual action on the hub.
"""

import argparse
import asyncio
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from eventhub.event.protobuf_codec import decode
from tests.chaos import report
from tests.chaos.hub import HubUnderTest
from tests.chaos.judge import last_judgement
from tests.chaos.rounds import RECOVERY_S_MAX, mark, recovery, silence
from tests.chaos.until import until
from tests.chaos.world import Load, World

FILLER = "filler"
CHUNK = b"\0" * (1 << 20)
REFUSED_S_MAX = 5.0  # from the full disk to the first 507, and from its end to the last failure
PANIC_S_MAX = 60.0
WAL = "SELECT pg_logical_emit_message(false, 'chaos', repeat('x', 1 << 20), true)"
SYSTEM = (
    "SELECT e.payload FROM events e JOIN segments s ON s.id = e.segment_id AND s.partition_id ="
    " e.partition_id WHERE s.stream_id = 1 ORDER BY e.sequence"
)


class Found(NamedTuple):
    """The measurements of a run; times in seconds."""

    acknowledged: int
    refused_507: int
    other_failures: dict[str, int]
    first_507_s: float  # from the full disk; below 0 when it came before the last byte
    full_s: float  # how long the disk was full
    postgres_ended: int
    recovery_s: float  # from the end of the full disk to the first answer to a new attempt
    silence_s: float
    warnings: list[dict[str, Any]]  # `storage.disk_full`
    problems: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--disk-mib", type=int, default=300)
    parser.add_argument("--rate", type=float, default=1_050.0, help="events offered per second")
    parser.add_argument("--load", type=float, default=6.0, help="seconds before and after")
    parser.add_argument("--full", type=float, default=10.0, help="seconds after the panic")


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run everything. Return the exit status."""
    found = await scenario(options, data)
    for name, value in found._asdict().items():
        print(name, value if not isinstance(value, float) else round(value, 2))
    return report.end(options.json, found._asdict(), found.problems)


async def scenario(options: argparse.Namespace, data: Path) -> Found:
    """Fill the disk and empty it. `options`: as on the command line. Raise MountRefused."""
    with mounted(data / "hub", options.disk_mib):
        async with World.open(data, Load(options.rate), random.Random(options.seed)) as world:
            found = await _fill_and_empty(world, options)
            found.problems.extend(await last_judgement(world.hub, world.key, world.journal))
        with suppress(OSError):
            shutil.copy(data / "hub" / "hub.log", data / "hub.log")
    return found


async def _fill_and_empty(world: World, options: argparse.Namespace) -> Found:
    filler = world.hub.data / FILLER
    marks = mark(world)
    world.clock.start()
    await asyncio.sleep(options.load)
    await asyncio.to_thread(fill, filler)
    full_at = time.monotonic()
    await until(lambda: bool(_refused(world)), "a 507", REFUSED_S_MAX)
    first_507_s = _refused(world)[0] - full_at
    await asyncio.to_thread(panic, world.hub)
    await until(lambda: _ends(world.hub) > 0, "PostgreSQL to end", PANIC_S_MAX)
    await asyncio.sleep(options.full)
    world.raise_broken()
    before = len(world.journal.promised)
    filler.unlink()
    emptied_at = time.monotonic()
    recovery_s = await recovery(world, emptied_at)
    await asyncio.sleep(options.load)
    await world.settle()
    problems = await world.judge.judge(world.journal, list(world.readers.values()))
    warnings = await disk_warnings(world.hub)
    problems += wrong(world, marks.failures, warnings, emptied_at)
    if len(world.journal.promised) <= before:
        problems.append("nothing was acknowledged after the disk was emptied")
    return Found(
        acknowledged=len(world.journal.promised),
        refused_507=len(_refused(world)),
        other_failures=dict(
            Counter(f"{f.status} {f.code[:40]}" for f in world.journal.failures if f.status != 507)
        ),
        first_507_s=first_507_s,
        full_s=emptied_at - full_at,
        postgres_ended=_ends(world.hub),
        recovery_s=recovery_s,
        silence_s=silence(world.journal.ack_times, marks.at, world.journal.ack_times[-1]),
        warnings=warnings,
        problems=problems,
    )


def wrong(world: World, known: int, warnings: list[dict[str, Any]], emptied_at: float) -> list[str]:
    """Return unexpected answers to emitters, and missing reports."""
    failures = world.journal.failures[known:]
    problems = list(world.journal.problems)
    problems += [
        f"an emit failed as it must not: {failure}"
        for failure in failures
        if failure.status not in (503, 507) or not failure.retry_after
    ]
    problems += [
        f"an emit was refused long after the disk was emptied: {failure}"
        for failure in failures
        if failure.at > emptied_at + REFUSED_S_MAX
    ]
    if [warning["level"] for warning in warnings] != ["warning"]:
        problems.append(f"the full disk was reported as {warnings}")
    return problems


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            if not file.write(CHUNK):
                return
    with path.open("ab", buffering=0) as file, suppress(OSError):
        while file.write(CHUNK[:4096]):
            continue


def panic(hub: HubUnderTest) -> None:
    """Make PostgreSQL write WAL until it panics."""
    ended, until_s = _ends(hub), time.monotonic() + PANIC_S_MAX
    while _ends(hub) == ended and time.monotonic() < until_s:
        with suppress(psycopg.Error), hub.connect_plainly() as connection:
            while _ends(hub) == ended:
                connection.execute(WAL.encode())


async def disk_warnings(hub: HubUnderTest) -> list[dict[str, Any]]:
    """Return the attributes of `storage.disk_full` as soon as there is one."""
    deadline = time.monotonic() + RECOVERY_S_MAX
    while True:
        with hub.connect_plainly() as connection:
            rows = connection.execute(SYSTEM.encode()).fetchall()
        events = [decode(bytes(row[0])) for row in rows]
        found = [dict(one.attributes) for one in events if one.type == "storage.disk_full"]
        if found or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.1)


def _refused(world: World) -> list[float]:
    """Return the times at which emits were answered with 507."""
    return [failure.at for failure in world.journal.failures if failure.status == 507]


def _ends(hub: HubUnderTest) -> int:
    return hub.output().count("postgres ended with status")


class MountRefused(Exception):
    """The machine does not permit a mount."""


@contextmanager
def mounted(folder: Path, mib: int) -> Iterator[None]:
    """Mount a disk in memory on a new folder. Raise MountRefused."""
    folder.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0700", "tmpfs", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MountRefused(done.stderr.strip())
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)
