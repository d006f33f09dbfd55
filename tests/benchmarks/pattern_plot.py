"""The figures of `patterns` as one SVG of several diagrams. Plain."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from tests.benchmarks.shape import Result

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 500, 300, 60, 40, 140, 40  # of each diagram
COLUMNS = 2
COLOURS = ("#0b6e99", "#b35900", "#4d7c0f", "#7c3aed")
Line = list[tuple[float, float]]


class Diagram(NamedTuple):
    """Lines by their names over one axis. `powers`: both axes are by powers of ten."""

    title: str
    lines: Mapping[str, Line]
    powers: bool = True


def plot(results: Sequence[Result]) -> str:
    """Draw what was measured; a diagram without figures is left out."""
    by_name = {result.case.name: result for result in results}
    drawn = [one for one in (maker(by_name) for maker in _MAKERS) if one.lines]
    rows = ceil(len(drawn) / COLUMNS)
    body = []
    for at, diagram in enumerate(drawn):
        left, top = at % COLUMNS * WIDTH, at // COLUMNS * HEIGHT
        body += [f'<g transform="translate({left} {top})">', *_shapes(diagram), "</g>"]
    size = f"{COLUMNS * WIDTH} {rows * HEIGHT}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}"'
        ' font-family="sans-serif" font-size="12" text-anchor="middle">\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


# --- what is drawn ---


def _cost(found: Mapping[str, Result]) -> Diagram:
    prefix = "pattern_cost_"
    return Diagram("One event: µs of CPU time, by patterns", _grown(found, prefix))


def _sharing(found: Mapping[str, Result]) -> Diagram:
    title = "Patterns that share elements: events/s, by patterns"
    return Diagram(title, _sides(found, "pattern_sharing_", ("together", "each alone")))


def _joins(found: Mapping[str, Result]) -> Diagram:
    title = "Temporal joins: events/s, by remembered events"
    return Diagram(title, _sides(found, "pattern_joins_", ("joined", "enumerated")))


def _memory(found: Mapping[str, Result]) -> Diagram:
    lines = _grown(found, "pattern_memory_")
    for name in [*lines]:
        also = found[f"pattern_memory_{name}"].also
        saved = ((x, also[f"of_{x:.0f}.state_bytes"]) for x, _ in lines[name][:-1])
        lines[f"{name}, saved"] = [*saved, (lines[name][-1][0], also["state_bytes"])]
    return Diagram("An open partial match: bytes, by open ones", lines)


def _bounded(found: Mapping[str, Result]) -> Diagram:
    result = found.get("pattern_bounded")
    if result is None:
        return Diagram("", {})
    held = [
        (float(name[6:]), value) for name, value in result.also.items() if name.startswith("mb_at_")
    ]
    allowed = [(x, result.baseline["allowed"]) for x, _ in held]
    title = "Events that begin matches and complete none: MB held"
    return Diagram(title, {"held": held, "allowed": allowed}, powers=False)


_MAKERS: tuple[Callable[[Mapping[str, Result]], Diagram], ...] = (
    _cost,
    _sharing,
    _joins,
    _memory,
    _bounded,
)


def _grown(found: Mapping[str, Result], prefix: str) -> dict[str, Line]:
    """Return a line for each case whose baselines are the same with fewer."""
    lines = {}
    for name, result in found.items():
        if name.startswith(prefix):
            fewer = [(float(of[3:]), value) for of, value in result.baseline.items()]
            lines[name.removeprefix(prefix)] = [*fewer, (result.also["count"], result.value)]
    return lines


def _sides(found: Mapping[str, Result], prefix: str, names: tuple[str, str]) -> dict[str, Line]:
    """Return the lines of the product and of its baseline over cases of different sizes."""
    cases = [result for name, result in found.items() if name.startswith(prefix)]
    if not cases:
        return {}
    product = [(one.also["count"], one.value) for one in cases]
    others = [(one.also["count"], next(iter(one.baseline.values()))) for one in cases]
    return {names[0]: sorted(product), names[1]: sorted(others)}


# --- drawing ---


def _shapes(diagram: Diagram) -> list[str]:
    points = [point for line in diagram.lines.values() for point in line]
    xs = sorted({x for x, _ in points})
    ys = [y for _, y in points]
    scale = log10 if diagram.powers else float
    ticks = _powers(ys) if diagram.powers else _quarters(max(ys))
    x_of = _axis(scale(xs[0]), scale(xs[-1]), LEFT, WIDTH - RIGHT)
    y_of = _axis(scale(ticks[0]), scale(ticks[-1]), HEIGHT - BOTTOM, TOP)
    shapes = [_text(WIDTH / 2, 20, diagram.title)]
    labelled = xs if len(xs) <= 5 else xs[1::2]
    shapes += [_text(x_of(scale(x)), HEIGHT - 15, f"{x:,.0f}") for x in labelled]
    for tick in ticks:
        y = y_of(scale(tick))
        shapes.append(_text(LEFT - 25, y + 4, f"{tick:,g}"))
        ends = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
        shapes.append(f'<line {ends} stroke="#ccc"/>')
    labels = _apart([y_of(scale(line[-1][1])) for line in diagram.lines.values()])
    for colour, (name, line), label in zip(COLOURS, diagram.lines.items(), labels, strict=False):
        places = [(x_of(scale(x)), y_of(scale(y))) for x, y in line]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        shapes.append(
            f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        shapes += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        text = f"{name} {line[-1][1]:,.4g}"
        shapes.append(_text(WIDTH - RIGHT / 2 + 5, label + 4, text, colour))
    return shapes


def _powers(values: Sequence[float]) -> list[float]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


def _quarters(most: float) -> list[float]:
    unit = 10.0 ** floor(log10(most))
    top = ceil(most / unit) * unit
    return [top * quarter / 4 for quarter in range(5)]


def _axis(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (end - start) * (value - low) / ((high - low) or 1)


def _apart(places: Sequence[float]) -> list[float]:
    """Return the heights of labels, moved so that none covers another."""
    moved = [0.0] * len(places)
    before = -100.0
    for at in sorted(range(len(places)), key=places.__getitem__):
        before = moved[at] = max(places[at], before + 14)
    return moved


def _text(x: float, y: float, text: str, colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}">{text}</text>'
