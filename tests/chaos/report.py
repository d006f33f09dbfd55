"""What a run prints and writes: a line per round, a table, JSON."""

from collections.abc import Sequence
from pathlib import Path

import orjson

from tests.chaos.rounds import Round

OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


def line(found: Round) -> str:
    """A round as it ends."""
    verdict = "ok" if not found.problems else f"{len(found.problems)} PROBLEMS"
    return (
        f"{found.number:>3}  {found.fault:<21} offered {found.offered_per_s:>6.0f}/s  "
        f"acknowledged {found.acknowledged:>6} {found.acknowledged_per_s:>6.0f}/s  "
        f"refused {found.refused:>4}  found again {found.found_again:>4}  "
        f"recovery {found.recovery_s:>5.2f} s  silence {found.silence_s:>5.2f} s  "
        f"{verdict}  ({found.victim})"
    )


def table(rounds: Sequence[Round]) -> str:
    """By fault: how often, and the slowest recovery."""
    lines = [
        f"{'fault':<22}{'rounds':>7}{'acknowledged':>14}{'refused':>9}{'found again':>13}"
        f"{'recovery median':>17}{'worst':>8}{'problems':>10}"
    ]
    for fault in sorted({found.fault for found in rounds}):
        those = [found for found in rounds if found.fault == fault]
        recoveries = sorted(found.recovery_s for found in those)
        lines.append(
            f"{fault:<22}{len(those):>7}{sum(f.acknowledged for f in those):>14}"
            f"{sum(f.refused for f in those):>9}{sum(f.found_again for f in those):>13}"
            f"{recoveries[len(recoveries) // 2]:>15.2f} s{recoveries[-1]:>6.2f} s"
            f"{sum(len(f.problems) for f in those):>10}"
        )
    return "\n".join(lines)


def write(path: Path, content: dict[str, object]) -> None:
    path.write_bytes(orjson.dumps(content, option=OPTIONS))
