"""The command `python -m tests.benchmarks.spark_scale --plot FILE`: the growth of audit and
backtest with the number of events, in time and memory; the plot of docs/jobs.md. It takes some
minutes for every ten million.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from sparkjobs.report.plot import PlotLabels, PlotSeries, lines
from tests.benchmarks.backtest import PARAMS, in_one_stream
from tests.benchmarks.history import make_history
from tests.benchmarks.spark_driven import Driven, driven

MILLION = 1_000_000
SIZES = "1,5,10,20"
_STYLE = '<svg font-family="sans-serif" color="#767676" '  # between black and white


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=SIZES, help=f"millions of events ({SIZES})")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    sizes = [float(size) for size in options.sizes.split(",")]
    found: dict[str, list[Driven]] = {"audit": [], "backtest": []}
    for size in sizes:
        for job, one in _measured(int(size * MILLION)).items():
            found[job].append(one)
            print(f"{job} of {size:g} M: {one.figures}; {one.result.summary}", flush=True)
    if options.plot:
        options.plot.write_text(_plot(sizes, found))
    if options.json:
        figures = {job: [one.figures for one in several] for job, several in found.items()}
        options.json.write_text(json.dumps({"millions": sizes, **figures}, indent=1) + "\n")


def _measured(events: int) -> dict[str, Driven]:
    folder = Path(tempfile.mkdtemp(prefix="eventhub-scale-"))
    try:
        history = make_history(folder / "history", events)
        audited = driven(history, "audit", {}, folder)
        assert audited.result.verdict == "ok", audited.result.summary
        searched = driven(in_one_stream(history), "backtest", PARAMS, folder)
        assert searched.result.figures["searched_events"] == events
        return {"audit": audited, "backtest": searched}
    finally:
        shutil.rmtree(folder)


def _plot(sizes: list[float], found: dict[str, list[Driven]]) -> str:
    series = [
        PlotSeries(f"{job}, {unit}", [value(one) for one in several])
        for job, several in found.items()
        for unit, value in (
            ("seconds", lambda one: one.seconds),
            ("tens of MB", lambda one: one.peak_mb / 10),
        )
    ]
    words = PlotLabels("Audit and back-test on two cores", "seconds, tens of MB", "million events")
    drawn = lines(sizes, series, words)
    svg = drawn[drawn.index("<svg") : drawn.rindex("</svg>") + len("</svg>")]
    return svg.replace("<svg ", _STYLE, 1) + "\n"


if __name__ == "__main__":
    main()
