"""The command `python -m tests.benchmarks [NAME...] --json FILE`: measures, prints a table, writes
JSON.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.benchmarks import (
    append,
    archive,
    audit,
    away,
    backtest,
    callback_latency,
    callbacks,
    churn,
    cursors,
    durability,
    emit,
    hostile,
    hostile_agents,
    idle,
    listen,
    match,
    match_plot,
    million,
    neighbours,
    pattern_plot,
    patterns,
    peers_plot,
    pull,
    push,
    replay,
    report,
    sessions,
    spark_index,
)
from tests.benchmarks.baselines.rows import make_table
from tests.benchmarks.load.start import LoadFailed
from tests.benchmarks.machine import fsync_rate
from tests.benchmarks.runner import run_case
from tests.benchmarks.shape import QUICK, Case, Pace, Result
from tests.benchmarks.world import World, world

BENCHMARKS: dict[str, Callable[[World, Pace], list[Case]]] = {
    "append": append.cases,
    "emit": emit.cases,
    "durability": durability.cases,
    "push": push.cases,
    "listen": listen.cases,
    "replay": replay.cases,
    "cursors": cursors.cases,
    "match": match.cases,
    "patterns": patterns.cases,
    "churn": churn.cases,
    "million": million.cases,
    "hostile": hostile.cases,
    "hostile_agents": hostile_agents.cases,
    "neighbours": neighbours.cases,
    "callbacks": callbacks.cases,
    "callback_latency": callback_latency.cases,
    "idle": idle.cases,
    "sessions": sessions.cases,
    "away": away.cases,
    "pull": pull.cases,
    "archive": archive.cases,
    "spark_index": spark_index.cases,
    "backtest": backtest.cases,
    "audit": audit.cases,
}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    standard = Pace()
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Measure the product against baselines in the same run.",
        epilog=f"Benchmarks: {', '.join(BENCHMARKS)}. See docs/benchmarks.md.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all if none is given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures there, as SVG")
    parser.add_argument("--only", metavar="CASE", action="append", help="only such cases")
    parser.add_argument("--seconds", type=float, help=f"of one reading ({standard.seconds})")
    parser.add_argument("--repeat", type=int, help=f"readings of each side ({standard.repeat})")
    parser.add_argument(
        "--size",
        type=int,
        metavar="N",
        help="registrations of `spark_index`, events of `backtest` and `audit`, sessions",
    )
    parser.add_argument("--quick", action="store_true", help="seconds in all; figures mean nothing")
    parser.add_argument("--profile", action="store_true", help="sample the product; print where")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; known: {', '.join(BENCHMARKS)}")
    return options


def pace_of(options: argparse.Namespace) -> Pace:
    pace = QUICK if options.quick else Pace()
    given = {
        "seconds": options.seconds,
        "repeat": options.repeat,
        "spark_registrations": options.size,
        "searched": options.size,
        "audited": options.size,
        "sessions": options.size,
    }
    return pace._replace(**{name: value for name, value in given.items() if value is not None})


def run(options: argparse.Namespace) -> None:
    pace = pace_of(options)
    with world(profile=options.profile, forked=options.quick) as made:
        make_table(made.url)
        expected = [
            case
            for name, cases in BENCHMARKS.items()
            if name in options.names or not options.names
            for case in cases(made, pace)
            if not options.only or case.name in options.only
        ]
        results, failures = run_cases(expected, pace)
        machine = {
            "noop_requests_per_s": emit.noop(made, pace)().value,
            **fsync_rate(made.data, seconds=pace.seconds),
        }
    print(report.table(results, machine))
    if options.json is not None:
        text = json.dumps(report.as_json(results, machine), indent=2)
        options.json.write_text(text + "\n")
    if options.plot is not None and results:
        options.plot.write_text(drawing(results, pace))
    if failures:
        sys.exit("\n".join(failures))


def drawing(results: Sequence[Result], pace: Pace) -> str:
    """Draw the first of the families of cases that were measured, or all cases as bars."""
    families: dict[str, Callable[[Sequence[Result]], str]] = {
        "cursor_": lambda found: cursors.plot(found, pace.streams[-1]),
        "match_cost_": lambda found: match_plot.plot(found, pace.matched[-1]),
        "pattern_": pattern_plot.plot,
    }
    for prefix, plot in families.items():
        if found := [result for result in results if result.case.name.startswith(prefix)]:
            return plot(found)
    return peers_plot.plot(results)


def run_cases(expected: list[Case], pace: Pace) -> tuple[list[Result], list[str]]:
    """Run all cases; a failing case does not stop the others."""
    results: list[Result] = []
    failures: list[str] = []
    for case in expected:
        try:
            results.append(run_case(case, pace))
            wrong = results[-1].misordered()
        except LoadFailed as error:
            wrong = [str(error)]
        failures += (found := [f"{case.name} FAILED: {one}" for one in wrong])
        print(*found, sep="\n", end="\n" if found else "", file=sys.stderr, flush=True)
    return results, failures


def main() -> None:
    try:
        run(parse())
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
