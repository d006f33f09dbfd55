"""The command `python -m tests.benchmarks.beside COMMIT NAME...`: measures this checkout and
another commit in alternation, and prints the ratio of each case.

Both sides are separate processes, each with the code, packages and servers of its checkout. Further
arguments go to both: `beside 9fbb930 emit push --rounds 5 --seconds 4`.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parents[2]
Figures = dict[str, dict[str, Any]]


def parse(arguments: list[str] | None = None) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.beside",
        description="Measure this checkout beside an older commit, in turn.",
        epilog="All other arguments go to `python -m tests.benchmarks` of both sides.",
    )
    parser.add_argument("commit", help="the other side")
    parser.add_argument("names", nargs="+", metavar="NAME", help="benchmarks that both have")
    parser.add_argument("--rounds", type=int, default=5, help="readings of each side (5)")
    return parser.parse_known_args(arguments)


def checkout(commit: str) -> Path:
    """Set up a worktree of the commit below build/, which is kept for the next time."""
    found = _output("git", "rev-parse", "--short=12", f"{commit}^{{commit}}")
    tree = HERE / "build" / "beside" / found
    if not tree.exists():
        _output("git", "worktree", "add", "--detach", str(tree), found)
    subprocess.run(["make", "-C", tree, "setup", ".venv/.stamp-dev"], check=True)
    return tree


def measure(tree: Path, arguments: list[str]) -> Figures:
    """Run the benchmarks of a checkout once."""
    written = HERE / "build" / "beside" / "figures.json"
    command = [tree / ".venv/bin/python", "-m", "tests.benchmarks", *arguments, "--repeat", "1"]
    subprocess.run([*command, "--json", written], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    found: Figures = json.loads(written.read_text())
    return found


def table(rounds: list[tuple[Figures, Figures]]) -> str:
    """Return, by case, the medians of both sides and the ratio of each round; above 1 this checkout
    is better.

    `against baselines`: the ratio of what each side reached of its own baseline in that run, which
    a slow minute of the machine does not change.
    """
    lines = [f"{'case':30} {'before':>12} {'here':>12}  ratio (low-high)     against baselines"]
    for name in (name for name in rounds[0][1] if name != "machine" and name in rounds[0][0]):
        pairs = [(before[name], here[name]) for before, here in rounds]
        values = [(before["value"], here["value"]) for before, here in pairs]
        ratios = [(before["ratio"], here["ratio"]) for before, here in pairs]
        lower = pairs[0][1]["lower_is_better"]
        medians = " ".join(f"{median(side):12,.4g}" for side in zip(*values, strict=True))
        judged = _span(values, lower)
        of_baselines = _span(ratios, lower) if ratios[0][1] else ""
        lines.append(f"{name:30} {medians}  {judged:20} {of_baselines}")
    return "\n".join(lines)


def _span(pairs: list[tuple[float, float]], lower_is_better: bool) -> str:
    found = [before / here if lower_is_better else here / before for before, here in pairs]
    return f"{median(found):.3f} ({min(found):.3f}-{max(found):.3f})"


def _output(*command: str) -> str:
    found = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True)
    return found.stdout.strip()


def main() -> None:
    options, more = parse()
    trees = (checkout(options.commit), HERE)
    rounds = []
    for turn in range(options.rounds):
        order = trees if turn % 2 == 0 else trees[::-1]
        found = {tree: measure(tree, [*options.names, *more]) for tree in order}
        rounds.append((found[trees[0]], found[trees[1]]))
        print(f"round {turn + 1} of {options.rounds}\n{table(rounds)}", file=sys.stderr, flush=True)
    print(table(rounds))


if __name__ == "__main__":
    main()
