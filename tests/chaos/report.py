"""The output of a run: a line per round, a table by fault, the problems, JSON."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tests.chaos.rounds import Round

OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


class Column(NamedTuple):
    """A column of a table, computed from all rounds of one kind."""

    title: str
    width: int
    cell: Callable[[Sequence[Any]], str]


def table(kind: str, rounds: Mapping[str, Sequence[Any]], columns: Iterable[Column]) -> str:
    """Return a header and a line for each kind that has rounds. `kind` heads the first column;
    every table has columns for the number of rounds and of problems.
    """
    shown = [
        Column("rounds", 8, lambda those: str(len(those))),
        *columns,
        Column("problems", 10, lambda those: str(sum(len(one.problems) for one in those))),
    ]
    width = max([len(kind), *map(len, rounds)]) + 1
    lines = [f"{kind:<{width}}" + "".join(f"{each.title:>{each.width}}" for each in shown)]
    for name, those in rounds.items():
        if those:
            cells = "".join(f"{each.cell(those):>{each.width}}" for each in shown)
            lines.append(f"{name:<{width}}{cells}")
    return "\n".join(lines)


def seconds(title: str, of: Callable[[Any], float]) -> list[Column]:
    """Return two columns: the median and the longest time."""

    def at(share: float) -> Callable[[Sequence[Any]], str]:
        return lambda those: f"{sorted(map(of, those))[int((len(those) - 1) * share + 0.5)]:.2f} s"

    return [Column(f"{title} median", len(title) + 11, at(0.5)), Column("worst", 10, at(1.0))]


def total(title: str, of: Callable[[Any], int]) -> Column:
    """Return a column with the sum over all rounds."""
    return Column(title, max(len(title) + 2, 9), lambda those: str(sum(map(of, those))))


def verdict(problems: Sequence[str]) -> str:
    """Return the verdict at the end of a line."""
    return "ok" if not problems else f"{len(problems)} PROBLEMS"


def line(found: Round) -> str:
    """Return the line of a round."""
    return (
        f"{found.number:>3}  {found.fault:<21} offered {found.offered_per_s:>6.0f}/s  "
        f"acknowledged {found.acknowledged:>6} {found.acknowledged_per_s:>6.0f}/s  "
        f"refused {found.refused:>4}  found again {found.found_again:>4}  "
        f"recovery {found.recovery_s:>5.2f} s  silence {found.silence_s:>5.2f} s  "
        f"{verdict(found.problems)}  ({found.victim})"
    )


def by_fault(rounds: Sequence[Round]) -> str:
    """Return how often each fault occurred, and its slowest recovery."""
    faults = sorted({found.fault for found in rounds})
    those = {fault: [found for found in rounds if found.fault == fault] for fault in faults}
    columns = [
        total("acknowledged", lambda found: found.acknowledged),
        total("refused", lambda found: found.refused),
        total("found again", lambda found: found.found_again),
        *seconds("recovery", lambda found: found.recovery_s),
    ]
    return table("fault", those, columns)


def end(path: Path | None, summary: Mapping[str, object], problems: Sequence[str]) -> int:
    """Print the problems; write them and `summary` to the file if one is given. Return the exit
    status.
    """
    for problem in problems:
        print(f"PROBLEM: {problem}")
    if path is not None:
        found = {**summary, "problems": problems}
        path.write_bytes(orjson.dumps(found, default=_fields, option=OPTIONS))
    return 1 if problems else 0


def _fields(measured: Any) -> Any:
    """Return the fields of a NamedTuple by name."""
    return measured._asdict()
