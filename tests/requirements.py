"""`python -m tests.requirements` (`make requirements`): each requirement row with the tests that
show it.
Rows come from docs/requirements.md, tests from the markers `@pytest.mark.req("ID")`, read without
running anything. `--check` fails when a row has no test. A marker of an unknown row always fails.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).resolve().parents[1]
_ROW = re.compile(r"^\| (?P<id>[A-Z]+-\d+) \| (?P<name>[^|]+) \| (?P<where>[^|]+) \|$", re.M)


class Row(NamedTuple):
    """A requirement: its id, its name, and where the project's documents describe it."""

    id: str
    name: str
    where: str


class Marked(NamedTuple):
    """A test that shows a row."""

    id: str
    file: Path
    test: str


def rows(text: str) -> list[Row]:
    """The rows of the table in docs/requirements.md."""
    found = [Row(*(part.strip() for part in match.groups())) for match in _ROW.finditer(text)]
    twice = {row.id for row in found if [other.id for other in found].count(row.id) > 1}
    if twice:
        raise ValueError(f"rows that stand twice: {', '.join(sorted(twice))}")
    return found


def marked_tests(folder: Path) -> Iterator[Marked]:
    """Every test below a folder that names a requirement, in the order of the files."""
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
                    yield Marked(row, file, node.name)


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _marks(node: ast.expr) -> Iterator[str]:
    """The ids of every `pytest.mark.req(...)` in an expression."""
    for call in ast.walk(node):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "req"
        ):
            for argument in call.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


class Report(NamedTuple):
    """What is printed, and what is wrong."""

    lines: list[str]
    missing: list[str]
    unknown: list[Marked]


def report(known: list[Row], tests: list[Marked]) -> Report:
    """Each row with its tests, MISSING where there is none."""
    lines: list[str] = []
    missing: list[str] = []
    for row in known:
        lines.append(f"{row.id:8} {row.name} ({row.where})")
        shown = [test for test in tests if test.id == row.id]
        lines += [f"         {_place(test)}" for test in shown]
        if not shown:
            missing.append(row.id)
            lines.append("         MISSING: no test carries this row")
    ids = {row.id for row in known}
    return Report(lines, missing, [test for test in tests if test.id not in ids])


def _place(test: Marked) -> str:
    file = test.file.relative_to(HOME) if test.file.is_relative_to(HOME) else test.file
    return f"{file}::{test.test}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.requirements", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a row has no test")
    options = parser.parse_args(arguments)
    known = rows((HOME / "docs" / "requirements.md").read_text())
    found = report(known, list(marked_tests(HOME / "tests")))
    print("\n".join(found.lines))
    print(f"\n{len(known)} rows, {len(known) - len(found.missing)} shown by tests")
    for test in found.unknown:
        print(f"UNKNOWN ROW {test.id} in {_place(test)}", file=sys.stderr)
    return 1 if found.unknown or (options.check and found.missing) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
