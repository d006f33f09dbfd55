"""The comparison of two checkouts: above 1 is better here, for any unit."""

import pytest

from tests.benchmarks.beside import table


def case(value: float, ratio: float | None, lower: bool) -> dict[str, object]:
    return {"value": value, "ratio": ratio, "lower_is_better": lower}


@pytest.mark.parametrize(
    ("name", "before", "here", "line"),
    [
        (
            "emit_64",
            case(100.0, 2.0, False),
            case(110.0, 3.0, False),
            ["100", "110", "1.100", "(1.100-1.100)", "1.500", "(1.500-1.500)"],
        ),
        (
            "latency_1",
            case(2.0, 4.0, True),
            case(4.0, 2.0, True),
            ["2", "4", "0.500", "(0.500-0.500)", "2.000", "(2.000-2.000)"],
        ),
        (
            "emit_64_ids",
            case(100.0, None, False),
            case(95.0, None, False),
            ["100", "95", "0.950", "(0.950-0.950)"],
        ),
    ],
)
def test_a_case_is_compared(
    name: str, before: dict[str, object], here: dict[str, object], line: list[str]
) -> None:
    machine = {"machine": {"noop_requests_per_s": 1.0}}
    lines = table([({name: before, **machine}, {name: here, **machine})]).splitlines()
    assert [one.split() for one in lines[1:]] == [[name, *line]]


def test_only_common_cases_are_compared_and_the_median_of_rounds_is_printed() -> None:
    rounds = [
        ({"one": case(1.0, None, False)}, {"one": case(value, None, False), "new": {}})
        for value in (1.0, 3.0, 2.0)
    ]
    [_, line] = table(rounds).splitlines()  # type: ignore[arg-type]
    assert line.split() == ["one", "1", "2", "2.000", "(1.000-3.000)"]
