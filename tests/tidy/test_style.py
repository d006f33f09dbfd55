"""The measures of the style: sizes, nesting, parameters, names, docstrings, imports. A rule that
hurts the code is changed here, in the open.
"""

import ast
import re
from collections.abc import Set
from graphlib import TopologicalSorter
from pathlib import Path

from tests.tidy.source import (
    HOLD_BLOCKS,
    HOME,
    PACKAGES,
    for_each,
    functions,
    module_name,
    modules,
    product,
    tree,
)

FILE_LINES_MAX = 400
# a line each and nothing to follow: one file is the point
TABLES = {
    "eventhub/base/limits.py": 1_220,
    "eventhub/eventlog/models.py": 600,
    "registrations/models.py": 720,
    "delivery/models.py": 700,
    "tests/acceptance/tenancy.py": 530,
    "tests/acceptance/eventhub/api/test_bad_inputs_management.py": 500,
}
FUNCTION_LINES_MAX = 60
NESTING_MAX = 3
PARAMETERS_MAX = 5
LINE_CHARS_MAX = 100
CATCH_ALL = {"utils.py", "common.py", "helpers.py", "util.py", "misc.py"}
DECISIONS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Match)
# A task that runs for ever is `while: try: async with: async for`, and reads well: one more of all.
BLOCKS = (*DECISIONS, ast.Try, ast.With, ast.AsyncWith)
PRAGMA = re.compile(r"  # (?:noqa|type): .*$")

each_module = for_each(modules())
each_product_module = for_each(product())


def nesting(node: ast.AST, blocks: tuple[type[ast.AST], ...], depth: int = 0) -> int:
    """Return the depth of nested blocks; an `elif` is no deeper than its `if`."""
    deepest = depth
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, HOLD_BLOCKS):
                continue
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            alternative = field == "orelse" and isinstance(child, ast.If) and len(value) == 1
            inner = depth + (isinstance(child, blocks) and not alternative)
            deepest = max(deepest, nesting(child, blocks, inner))
    return deepest


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    names = [item.arg for item in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


@each_module
def test_file_is_short(file: Path) -> None:
    lines = (HOME / file).read_text().splitlines()
    assert len(lines) <= TABLES.get(str(file), FILE_LINES_MAX)


@each_module
def test_functions_are_short_with_few_parameters(file: Path) -> None:
    for function in functions(file):
        where = f"{file}:{function.lineno} {function.name}"
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        assert lines <= FUNCTION_LINES_MAX, f"{where}: {lines} lines"
        assert len(parameters(function)) <= PARAMETERS_MAX, f"{where}: {parameters(function)}"


@each_product_module
def test_functions_are_flat(file: Path) -> None:
    """The tests' own loops over tables may go deeper."""
    for function in functions(file):
        where = f"{file}:{function.lineno} {function.name}"
        assert nesting(function, DECISIONS) <= NESTING_MAX, f"{where}: too deep"
        assert nesting(function, BLOCKS) <= NESTING_MAX + 1, f"{where}: too deep"


@each_module
def test_lines_are_short(file: Path) -> None:
    long = [
        number
        for number, line in enumerate((HOME / file).read_text().splitlines(), 1)
        if len(PRAGMA.sub("", line)) > LINE_CHARS_MAX
    ]
    assert long == []


@each_module
def test_every_module_has_a_docstring(file: Path) -> None:
    text = (HOME / file).read_text()
    if file.name == "__init__.py" and not text:
        return
    docstring = ast.get_docstring(tree(file))
    assert docstring, f"{file} has no docstring"
    assert len(docstring.split()) >= 4


def test_no_module_is_a_place_for_everything() -> None:
    assert [file for file in modules() if file.name in CATCH_ALL] == []


def test_packages_are_empty() -> None:
    """`import eventhub` costs nothing in any process."""
    inits = [file for file in product() if file.name == "__init__.py"]
    assert [file for file in inits if (HOME / file).read_text()] == []
    assert Path("eventhub/__init__.py") in inits


@each_product_module
def test_own_modules_are_imported_at_the_top(file: Path) -> None:
    """An import inside a function hides a cycle."""
    for function in functions(file):
        for node in ast.walk(function):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            own = [name for name in names if name.split(".")[0] in PACKAGES]
            assert own == [], f"{file}:{function.name}"


def imported(file: Path, known: Set[str]) -> set[str]:
    """Return which of the known modules a module imports."""
    found: set[str] = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
            found.add(node.module)
    return found & known


def test_imports_have_no_cycle() -> None:
    files = {module_name(file): file for file in product()}
    graph = {name: imported(file, files.keys()) - {name} for name, file in files.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def test_no_two_classes_of_the_product_share_a_name() -> None:
    """The client mirrors a few of the hub's, and Django's `Command` recurs by design."""
    named: dict[str, list[str]] = {}
    for file in product():
        if module_name(file).split(".")[0] != "eventhub_client":
            for node in tree(file).body:
                if isinstance(node, ast.ClassDef) and node.name != "Command":
                    named.setdefault(node.name, []).append(str(file))
    assert {name: files for name, files in named.items() if len(files) > 1} == {}
