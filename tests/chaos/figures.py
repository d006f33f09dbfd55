"""Plots and percentiles of fault runs."""

from collections.abc import Sequence
from pathlib import Path

from sparkjobs.report.plot import PlotLabels, PlotSeries, lines

_STYLE = '<svg font-family="sans-serif" color="#767676" '  # between black and white


def draw(
    path: Path, positions: Sequence[float], series: Sequence[PlotSeries], labels: PlotLabels
) -> None:
    """Draw a line for each series into an SVG file."""
    drawn = lines(positions, series, labels)
    svg = drawn[drawn.index("<svg") : drawn.rindex("</svg>") + len("</svg>")]
    path.write_text(svg.replace("<svg ", _STYLE, 1) + "\n")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which so large a share lies; infinite if there is none."""
    found = sorted(values) or [float("inf")]
    return found[min(int(len(found) * share), len(found) - 1)]


def per_second(times: Sequence[float], began: float, seconds: int, width_s: int = 1) -> list[float]:
    """Return how many of the times lie in each interval since `began`, a second."""
    counts = [0.0] * (seconds // width_s + 1)
    for at in times:
        place = int((at - began) // width_s)
        if 0 <= place < len(counts):
            counts[place] += 1 / width_s
    return counts
