"""`cursors`: a listener from the first, middle and last cursor of streams of growing length."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from tests.benchmarks.load.jobs import CursorJob
from tests.benchmarks.shape import Case, Measure, Pace, Reading, Result
from tests.benchmarks.world import World

PLACES = ("first", "middle", "last")
COST_MAX = 1.3  # of the longest stream against the shortest
SAMPLES_SHARE = 10


def cases(world: World, pace: Pace) -> list[Case]:
    sizes = pace.streams
    longest = len(sizes) - 1
    return [
        Case(
            name=f"cursor_{name}",
            unit="ms",
            product=place.of(longest),
            baselines={f"of_{sizes[at]}": place.of(at) for at in range(longest)},
            floor=COST_MAX,
            lower_is_better=True,
        )
        for name, place in ((name, _Place(world, pace, at)) for at, name in enumerate(PLACES))
    ]


class _Place:
    """A position in all streams. The streams are measured together: their listeners take turns."""

    def __init__(self, world: World, pace: Pace, place: int) -> None:
        self._world = world
        self._pace = pace
        self._place = place
        self._figures: dict[str, float] = {}

    def of(self, at: int) -> Measure:
        """Measure one stream; the longest one comes first in each turn, and measures for all."""

        def measure() -> Reading:
            if at == len(self._pace.streams) - 1:
                self._measure()
            also = {"p99_ms": self._figures[f"p99_ms.{at}"]}
            also["filled_s"] = _filled(self._world, self._pace.streams)[at]["took_s"]
            return Reading(self._figures[f"p50_ms.{at}"], also)

        return measure

    def _measure(self) -> None:
        sizes = self._pace.streams
        listens = [
            json.dumps(
                {
                    "op": "listen",
                    "listener": "bench",
                    "stream": f"held.{at}",
                    "from": found["cursors"][self._place],
                }
            )
            for at, found in enumerate(_filled(self._world, sizes))
        ]
        samples = max(self._pace.latency_samples // SAMPLES_SHARE, 1)
        job = CursorJob(self._world.emit_target("held.0"), listens, samples)
        self._figures = self._world.load(f"listen from the {PLACES[self._place]} cursor", job)


@cache
def _filled(world: World, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Create the streams on first use."""
    return [world.fill(f"held.{at}", size) for at, size in enumerate(sizes)]


WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 320, 60, 40, 120, 40
COLOURS = {"first": "#0b6e99", "middle": "#b35900", "last": "#4d7c0f"}


def plot(results: Sequence[Result], longest: int) -> str:
    """Draw the p50 of each position over the length of the stream as an SVG; one step per
    length.
    """
    lines = {r.case.name.removeprefix("cursor_"): _points(r, longest) for r in results}
    top = 1.25 * max(value for points in lines.values() for _, value in points)
    sizes = [size for size, _ in next(iter(lines.values()))]
    step = (WIDTH - LEFT - RIGHT) / (len(sizes) - 1)
    high = HEIGHT - TOP - BOTTOM
    shapes = [_text(WIDTH / 2, 20, "From a listen to its first event: p50 in ms, by events stored")]
    for at, size in enumerate(sizes):
        shapes.append(_text(LEFT + at * step, HEIGHT - 15, f"{size:,}"))
    for value in (0, top / 2, top):
        y = HEIGHT - BOTTOM - high * value / top
        shapes.append(_text(LEFT - 25, y + 4, f"{value:.2g}"))
        shapes.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>'
        )
    for name, points in lines.items():
        places = [
            (LEFT + at * step, HEIGHT - BOTTOM - high * value / top)
            for at, (_, value) in enumerate(points)
        ]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        colour = COLOURS[name]
        shapes.append(
            f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        shapes += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        x, y = places[-1]
        shapes.append(_text(x + 60, y + 4, f"{name} {points[-1][1]:.2f}", colour))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12" text-anchor="middle">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _points(result: Result, longest: int) -> list[tuple[int, float]]:
    shorter = [(int(name[3:]), value) for name, value in result.baseline.items()]
    return [*shorter, (longest, result.value)]


def _text(x: float, y: float, text: str, colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}">{text}</text>'
