"""`python -m tests.chaos`: random faults, or with `--soak` slow readers; see docs/chaos.md."""

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos import report
from tests.chaos.faults import FAULTS, choose
from tests.chaos.judge import last_judgement
from tests.chaos.rounds import Plan, Round, run_round
from tests.chaos.soak import soak
from tests.chaos.world import Load, World


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--rate", type=float, default=1_050.0, help="events offered per second")
    parser.add_argument("--seconds-per-round", type=float, default=6.0, help="beside the fault")
    parser.add_argument("--only", action="append", default=[], choices=sorted(FAULTS))
    parser.add_argument("--soak", type=float, metavar="SECONDS", help="slow readers, no faults")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--data", type=Path, help="an empty folder; kept. Default: a temporary one")
    return parser.parse_args()


async def chaos(options: argparse.Namespace, data: Path) -> int:
    """All rounds, or until one fails. Returns the exit status."""
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
            "problems_at_the_end": problems,
            "rounds": [found._asdict() for found in rounds],
        }
    print(report.table(rounds))
    print(", ".join(f"{k} {v}" for k, v in summary.items() if isinstance(v, int)))
    if options.json:
        report.write(options.json, summary)
    evidence = [problem for found in rounds for problem in found.problems] + problems
    for problem in evidence:
        print(f"PROBLEM: {problem}")
    return 1 if evidence else 0


def main() -> int:
    options = arguments()
    data = options.data or Path(tempfile.mkdtemp(prefix="eventhub-chaos-", dir="/tmp"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the hub is stopped too
    status = 1
    try:
        status = asyncio.run(soak(options, data) if options.soak else chaos(options, data))
    finally:
        if status == 0 and options.data is None:
            shutil.rmtree(data, ignore_errors=True)
        else:
            print(f"kept: {data}/journal.ndjson, {data}/hub/hub.log")
    return status


if __name__ == "__main__":
    sys.exit(main())
