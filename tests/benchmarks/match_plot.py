"""The cost of an event over the number of registrations, as an SVG; both axes by powers of ten.
Plain.
"""

from collections.abc import Sequence
from math import ceil, floor, log10

from tests.benchmarks.shape import Result

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 360, 60, 40, 130, 40
COLOURS = ("#0b6e99", "#b35900", "#4d7c0f", "#7c3aed")
TITLE = "One event, JSON in and numbers out: µs of CPU time, by registrations"
Point = tuple[int, float]


def plot(results: Sequence[Result], most: int) -> str:
    """Draw a line for each case, named by what follows `cost_` in its name."""
    lines = {r.case.name.partition("cost_")[2]: _points(r, most) for r in results}
    counts = [count for count, _ in next(iter(lines.values()))]
    values = [value for points in lines.values() for _, value in points]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    shapes = [_text(WIDTH / 2, 20, TITLE)]
    for at, count in enumerate(counts):
        shapes.append(_text(_x(at, len(counts)), HEIGHT - 15, f"{count:,}"))
    for power in range(low, high + 1):
        y = _y(10.0**power, low, high)
        shapes.append(_text(LEFT - 25, y + 4, f"{10.0**power:,g}"))
        ends = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
        shapes.append(f'<line {ends} stroke="#ccc"/>')
    for colour, (name, points) in zip(COLOURS, lines.items(), strict=False):
        places = [(_x(at, len(points)), _y(v, low, high)) for at, (_, v) in enumerate(points)]
        shapes += _line(f"{name} {points[-1][1]:,.3g}", places, colour)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12" text-anchor="middle">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _line(label: str, places: list[tuple[float, float]], colour: str) -> list[str]:
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    x, y = places[-1]
    return [
        f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places),
        _text(x + 70, y + 4, label, colour),
    ]


def _points(result: Result, most: int) -> list[Point]:
    fewer = [(int(name[3:]), value) for name, value in result.baseline.items()]
    return [*fewer, (most, result.value)]


def _x(at: int, count: int) -> float:
    return LEFT + at * (WIDTH - LEFT - RIGHT) / max(count - 1, 1)


def _y(value: float, low: int, high: int) -> float:
    share = (log10(value) - low) / max(high - low, 1)
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def _text(x: float, y: float, text: str, colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}">{text}</text>'
