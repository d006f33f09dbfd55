"""List every requirement of docs/requirements.md with the tests that show it.

`make requirements` runs this module. It reads the markers `@pytest.mark.req("ID")` without running
a test.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).resolve().parents[1]
_ROW = re.compile(r"^\| *[A-Z]+-\d+ *\|.*$", re.M)
_CELLS = re.compile(r"(?<!\\)\|")  # a bar within a cell is written \|
NOT_BUILT = "-"


class Row(NamedTuple):
    """A requirement, and where the documentation describes how the product meets it."""

    id: str
    name: str
    demands: str
    described_in: str

    @property
    def claimed(self) -> bool:
        """True if the documentation describes the row as built."""
        return self.described_in != NOT_BUILT


class MarkedTest(NamedTuple):
    """A test with the id of a row that it shows."""

    id: str
    file: Path
    test: str

    def __str__(self) -> str:
        file = self.file.relative_to(HOME) if self.file.is_relative_to(HOME) else self.file
        return f"{file}::{self.test}"


class Report(NamedTuple):
    """The lines to print, and the disagreements between rows and tests."""

    lines: list[str]
    problems: list[str]


def read_rows(text: str) -> list[Row]:
    """Return the rows of the tables. Raise ValueError for a malformed or repeated row."""
    rows: dict[str, Row] = {}
    for line in _ROW.findall(text):
        cells = [cell.strip().replace(r"\|", "|") for cell in _CELLS.split(line)[1:-1]]
        if len(cells) != len(Row._fields) or not all(cells):
            raise ValueError(f"A row has id, name, demands and described in, none empty: {line}")
        row = Row(*cells)
        if row.id in rows:
            raise ValueError(f"The row {row.id} is there twice.")
        rows[row.id] = row
    return list(rows.values())


def marked_tests(folder: Path) -> Iterator[MarkedTest]:
    """Yield every test below a folder that names a requirement, in the order of the files."""
    for file in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(file.read_text(), str(file))
        common = [
            row
            for node in tree.body
            if isinstance(node, ast.Assign) and _assigns(node, "pytestmark")
            for row in _marks(node.value)
        ]
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_"):
                own = [row for decorator in node.decorator_list for row in _marks(decorator)]
                for row in dict.fromkeys((*common, *own)):
                    yield MarkedTest(row, file, node.name)


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _marks(node: ast.expr) -> Iterator[str]:
    """Yield the ids of every `pytest.mark.req(...)` in an expression."""
    for call in ast.walk(node):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "req"
        ):
            for argument in call.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def report(rows: list[Row], tests: list[MarkedTest]) -> Report:
    """List each row with its tests, and the totals; collect what `--check` fails for."""
    tests_of: dict[str, list[MarkedTest]] = {row.id: [] for row in rows}
    problems: list[str] = []
    for test in tests:
        if test.id in tests_of:
            tests_of[test.id].append(test)
        else:
            problems.append(f"{test} carries {test.id}, and there is no such row")
    lines: list[str] = []
    for row in rows:
        shown_by = tests_of[row.id]
        lines.append(f"{row.id:8} {row.name} ({row.described_in if row.claimed else 'not built'})")
        lines += [f"         {test}" for test in shown_by] or ["         not shown"]
        if row.claimed and not shown_by:
            problems.append(f"{row.id} is described in {row.described_in}, and no test shows it")
        if shown_by and not row.claimed:
            problems.append(f"{row.id} is shown by {shown_by[0]}, and not described anywhere")
    claimed = sum(row.claimed for row in rows)
    shown = sum(1 for row in rows if tests_of[row.id])
    totals = f"{len(rows)} rows: {claimed} described as built, {shown} shown"
    return Report([*lines, "", f"{totals}, {len(rows) - claimed} not built yet"], problems)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.requirements", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if rows and tests disagree")
    options = parser.parse_args(arguments)
    rows = read_rows((HOME / "docs" / "requirements.md").read_text())
    found = report(rows, list(marked_tests(HOME / "tests")))
    print("\n".join(found.lines))
    for problem in found.problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if options.check and found.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
