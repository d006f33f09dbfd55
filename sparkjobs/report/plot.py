"""Plots of a report, as inline SVG. Axes and texts take the page's text colour, so that they are
readable on light and dark backgrounds. Plain module.

Matplotlib, whose import takes as long as a small job, is loaded when the first plot is drawn.
"""

import io
import re
from collections.abc import Callable, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkjobs.report.page import Html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import EngFormatter

COLOURS = ("#2f81c7", "#d9822b", "#2a9d6f", "#b565c9", "#d1495b", "#8a8f3c", "#6c7a89")
_TEXT = "#010203"  # replaced by the page's text colour in the finished SVG
_NAME_CHARACTERS_MAX = 40
_DAY_US = 86_400e6
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 11,
    "text.color": _TEXT,
    "axes.edgecolor": _TEXT,
    "axes.labelcolor": _TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
    "legend.frameon": False,
}


class PlotLabels(NamedTuple):
    """The title and axis labels of a plot."""

    title: str
    y: str
    x: str = ""


class PlotSeries(NamedTuple):
    """A named series, drawn in one colour: one value per position."""

    name: str
    values: Sequence[float]


def lines(positions: Sequence[float], series: Sequence[PlotSeries], labels: PlotLabels) -> Html:
    """Draw a line for each series over numbers."""
    return _draw(labels, series, lambda axes: _lines(axes, positions, series))


def time_lines(times_us: Sequence[int], series: Sequence[PlotSeries], labels: PlotLabels) -> Html:
    """Draw a line for each series over time (UTC)."""

    def draw(axes: "Axes") -> None:
        _lines(axes, _times(times_us), series)
        _time_axis(axes)

    return _draw(labels, series, draw)


def time_bars(
    starts_us: Sequence[int], width_us: int, series: Sequence[PlotSeries], labels: PlotLabels
) -> Html:
    """Draw bars of one width that start at the given times (UTC); series are stacked."""

    def draw(axes: "Axes") -> None:
        _bars(axes, _times(starts_us), series, width_us / _DAY_US)
        _time_axis(axes)

    return _draw(labels, series, draw)


def bars(names: Sequence[str], series: Sequence[PlotSeries], labels: PlotLabels) -> Html:
    """Draw a horizontal bar for each name, the first on top; series are stacked."""

    def draw(axes: "Axes") -> None:
        positions = list(range(len(names)))
        left = [0.0] * len(names)
        for colour, one in zip(_colours(series), series, strict=True):
            axes.barh(positions, one.values, left=left, color=colour, label=_short(one.name))
            left = [before + value for before, value in zip(left, one.values, strict=True)]
        axes.set_yticks(positions, [_short(name) for name in names])
        axes.invert_yaxis()
        axes.xaxis.set_major_formatter(_with_prefixes())

    turned = PlotLabels(labels.title, y=labels.x, x=labels.y)
    return _draw(turned, series, draw, height=1.2 + 0.35 * max(len(names), 2), numbers_up=False)


def _draw(
    labels: PlotLabels,
    series: Sequence[PlotSeries],
    draw: Callable[["Axes"], None],
    *,
    height: float = 3.6,
    numbers_up: bool = True,
) -> Html:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": labels.title}):
        figure = Figure(figsize=(9, height), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.set_title(labels.title, loc="left")
        axes.set_xlabel(labels.x)
        axes.set_ylabel(labels.y)
        if numbers_up:
            axes.yaxis.set_major_formatter(_with_prefixes())
            axes.set_ylim(bottom=0)
        if len(series) > 1:
            figure.legend(loc="outside lower center", ncols=4)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return Html(f"<figure>{_inline(out.getvalue())}</figure>")


def _inline(svg: str) -> str:
    """Remove the document's head and the ids of groups, which repeat in every plot, and set the
    text colour.
    """
    inner = svg[svg.index("<svg") :]
    inner = re.sub(r"<metadata>.*?</metadata>", "", inner, flags=re.DOTALL)
    return re.sub(r'<g id="[^"]*"', "<g", inner).replace(_TEXT, "currentColor")


def _lines(axes: "Axes", positions: Sequence[float], series: Sequence[PlotSeries]) -> None:
    for colour, one in zip(_colours(series), series, strict=True):
        marker = "o" if len(one.values) < 30 else ""
        axes.plot(positions, one.values, color=colour, label=_short(one.name), marker=marker, ms=4)


def _bars(
    axes: "Axes", starts: Sequence[float], series: Sequence[PlotSeries], width: float
) -> None:
    below = [0.0] * len(starts)
    for colour, one in zip(_colours(series), series, strict=True):
        name = _short(one.name)
        axes.bar(starts, one.values, width, below, align="edge", color=colour, label=name)
        below = [before + value for before, value in zip(below, one.values, strict=True)]


def _times(times_us: Sequence[int]) -> list[float]:
    """Convert to Matplotlib's unit, days since 1970."""
    return [time_us / _DAY_US for time_us in times_us]


def _time_axis(axes: "Axes") -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator: Any = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    formatter: Any = ConciseDateFormatter(locator, tz=UTC)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(formatter)


def _with_prefixes() -> "EngFormatter":
    """Return a formatter of numbers: 20 k, 3 M."""
    from matplotlib.ticker import EngFormatter

    return EngFormatter(sep="")


def _colours(series: Sequence[PlotSeries]) -> list[str]:
    return [COLOURS[at % len(COLOURS)] for at in range(len(series))]


def _short(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS_MAX else name[: _NAME_CHARACTERS_MAX - 1] + "…"
