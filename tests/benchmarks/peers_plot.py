"""The product beside its baselines and peers as bars, a block for each case, as an SVG. Plain."""

from collections.abc import Sequence

from tests.benchmarks.shape import Result

WIDTH, LEFT, RIGHT = 760, 170, 110
ROW, GAP, TOP = 20, 34, 14
PRODUCT, OTHER, TEXT = "#0b6e99", "#b9c2c9", "#333"


def plot(results: Sequence[Result]) -> str:
    """Draw each case with a baseline; the bars of a block have a scale of their own."""
    shapes: list[str] = []
    y = TOP
    for result in results:
        if result.baseline:
            block = _block(result, y)
            shapes += block
            y += GAP + ROW * (len(result.baseline) + 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + TOP}"'
        ' font-family="sans-serif" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{y + TOP}" fill="white"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _block(result: Result, y: int) -> list[str]:
    case = result.case
    better = "less is better" if case.lower_is_better else "more is better"
    shapes = [_text(LEFT, y + 12, f"{case.name}, {case.unit} ({better})", "start", "bold")]
    values = {"eventhub": result.value, **result.baseline}
    for at, (name, value) in enumerate(values.items()):
        top = y + 18 + ROW * at
        length = (WIDTH - LEFT - RIGHT) * value / max(values.values())
        colour = OTHER if at else PRODUCT
        shapes += [
            _text(LEFT - 8, top + 13, name, "end"),
            f'<rect x="{LEFT}" y="{top}" width="{length:.1f}" height="{ROW - 4}" fill="{colour}"/>',
            _text(LEFT + length + 6, top + 13, _number(value), "start"),
        ]
    return shapes


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def _text(x: float, y: float, text: str, anchor: str, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{TEXT}" text-anchor="{anchor}"'
        f' font-weight="{weight}">{text}</text>'
    )
