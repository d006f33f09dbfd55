"""The command `python -m tests.chaos [KIND]`; the default kind is `log`. See docs/chaos.md."""

import argparse
import asyncio
import gc
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from tests.chaos import disk, outbox, patterns, report, timers
from tests.chaos.callbacks import run as callbacks
from tests.chaos.circle import run as circle
from tests.chaos.exact import run as exact
from tests.chaos.faults import FAULTS, choose
from tests.chaos.judge import last_judgement
from tests.chaos.kafka import run as kafka
from tests.chaos.machines import run as machines
from tests.chaos.outages import away, backlog, storm
from tests.chaos.quota import run as quota
from tests.chaos.restart import run as restart
from tests.chaos.rounds import Plan, Round, run_round
from tests.chaos.sessions import run as sessions
from tests.chaos.soak import soak
from tests.chaos.spark import run as spark
from tests.chaos.starts import run as starts
from tests.chaos.upgrade import run as upgrade
from tests.chaos.world import Load, World

SWITCH_S = 0.0005  # so that a thread that judges does not hold up the emitters


class Kind(NamedTuple):
    """One kind of fault run; `run` returns the exit status."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Path], Awaitable[int]]


def arguments() -> tuple[Kind, argparse.Namespace]:
    """Parse the command line. The first word is the kind; the default is `log`."""
    words = sys.argv[1:]
    name = words.pop(0) if words and not words[0].startswith("-") else "log"
    kinds = (
        f"Kinds: {', '.join(KINDS)}. `python -m tests.chaos KIND --help` has the options of one."
    )
    prog = f"python -m tests.chaos {name}"
    parser = argparse.ArgumentParser(prog=prog, description=__doc__, epilog=kinds)
    if name not in KINDS:
        parser.error(f"there is no {name!r}, but {', '.join(KINDS)}")
    KINDS[name].add_arguments(parser)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--data", type=Path, help="an empty folder; kept. Default: a temporary one")
    return KINDS[name], parser.parse_args(words)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the fault runs of the log."""
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--rate", type=float, default=1_050.0, help="events offered per second")
    parser.add_argument("--seconds-per-round", type=float, default=6.0, help="beside the fault")
    parser.add_argument("--only", action="append", default=[], choices=sorted(FAULTS))
    parser.add_argument("--soak", type=float, metavar="SECONDS", help="slow readers, no faults")


async def log(options: argparse.Namespace, data: Path) -> int:
    """Run slow readers (`--soak`) or faults."""
    return await (soak(options, data) if options.soak else chaos(options, data))


async def chaos(options: argparse.Namespace, data: Path) -> int:
    """Run all rounds, or until one fails. Return the exit status."""
    dice = random.Random(options.seed)
    rounds: list[Round] = []
    print(f"seed {options.seed}, data {data}", flush=True)
    async with World.open(data, Load(options.rate), random.Random(dice.random())) as world:
        for number in range(1, options.rounds + 1):
            name = choose(dice, options.only)
            own = random.Random(dice.random())
            plan = Plan(number, name, FAULTS[name], options.seconds_per_round)
            found = await run_round(world, plan, own)
            rounds.append(found)
            print(report.line(found), flush=True)
            if found.problems:
                break
        problems = await last_judgement(world.hub, world.key, world.journal)
        streams = world.judge.streams.values()
        summary = {
            "seed": options.seed,
            "offered": world.journal.offered,
            "acknowledged": len(world.journal.promised),
            "given_up": len(world.journal.absent) + len(world.journal.unknown),
            "stored": sum(stream.head for stream in streams),
            "segments": sum(stream.segment_count for stream in streams),
            "seen": sum(seen.count for seen in world.readers.values()),
            "connections": sum(seen.connections for seen in world.readers.values()),
            "rounds": [found._asdict() for found in rounds],
        }
    print(report.by_fault(rounds))
    print(", ".join(f"{k} {v}" for k, v in summary.items() if isinstance(v, int)))
    evidence = [problem for found in rounds for problem in found.problems] + problems
    return report.end(options.json, summary, evidence)


KINDS = {
    "log": Kind(add_arguments, log),
    "callbacks": Kind(callbacks.add_arguments, callbacks.run),
    "exact": Kind(exact.add_arguments, exact.run),
    "circle": Kind(circle.add_arguments, circle.run),
    "disk": Kind(disk.add_arguments, disk.run),
    "backlog": Kind(backlog.add_arguments, backlog.run),
    "kafka": Kind(kafka.add_arguments, kafka.run),
    "machines": Kind(machines.add_arguments, machines.run),
    "outbox": Kind(outbox.add_arguments, outbox.run),
    "patterns": Kind(patterns.add_arguments, patterns.run),
    "outage": Kind(away.add_arguments, away.run),
    "storm": Kind(storm.add_arguments, storm.run),
    "quota": Kind(quota.add_arguments, quota.run),
    "restart": Kind(restart.add_arguments, restart.run),
    "sessions": Kind(sessions.add_arguments, sessions.run),
    "spark": Kind(spark.add_arguments, spark.run),
    "starts": Kind(starts.add_arguments, starts.run),
    "timers": Kind(timers.add_arguments, timers.run),
    "upgrade": Kind(upgrade.add_arguments, upgrade.run),
}


async def perform(kind: Kind, options: argparse.Namespace, data: Path) -> int:
    """Run without garbage collection: it stops the emitters for seconds in a long run, and the
    objects are kept anyway.
    """
    gc.disable()
    sys.setswitchinterval(SWITCH_S)
    return await kind.run(options, data)


def main() -> int:
    kind, options = arguments()
    data = options.data or Path(tempfile.mkdtemp(prefix="eventhub-chaos-", dir="/tmp"))
    data.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the hub is stopped too
    status = 1
    try:
        status = asyncio.run(perform(kind, options, data))
    finally:
        if status == 0 and options.data is None:
            shutil.rmtree(data, ignore_errors=True)
        else:
            print(f"kept: {data}, with hub/hub.log")
    return status


if __name__ == "__main__":
    sys.exit(main())
