"""The input of the tidy tests: the repository's files and their syntax trees."""

import ast
import functools
import gc
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
PACKAGES = ("eventhub", "registrations", "delivery", "sparkjobs", "eventhub_client")
CLIENT = Path("clients/python")
HOLD_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)  # an expression holds none


@functools.cache
def tracked() -> tuple[Path, ...]:
    """Return every file of the repository, relative to its folder, that exists."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=HOME, capture_output=True, check=True, text=True
    )
    files = (Path(name) for name in listed.stdout.split("\0") if name)
    return tuple(file for file in files if (HOME / file).is_file())


@functools.cache
def modules() -> tuple[Path, ...]:
    """Return Python written by hand: neither generated nor a migration."""
    return tuple(
        file
        for file in tracked()
        if file.suffix == ".py"
        and not file.name.endswith("_pb2.py")
        and "migrations" not in file.parts
    )


def product() -> tuple[Path, ...]:
    """Return the modules of the product, without its tests."""
    return tuple(file for file in modules() if module_name(file).split(".")[0] in PACKAGES)


def for_each(files: Sequence[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Return one test of many files, which names all that are wrong: a test for each would cost
    more than looking at it.
    """

    def over(test: Callable[[Path], None]) -> Callable[[], None]:
        def all_of_them() -> None:
            wrong: list[str] = []
            for file in files:
                try:
                    test(file)
                except AssertionError as error:
                    wrong.append(f"{file}: {error}")
            assert not wrong, "\n".join(wrong)

        all_of_them.__doc__ = test.__doc__
        return all_of_them

    return over


@functools.cache
def tree(file: Path) -> ast.Module:
    """Return the syntax tree of a module. The garbage collector looks at no tree: it would look at
    all of them again and again, which takes longer than to parse them.
    """
    gc.disable()
    try:
        return ast.parse((HOME / file).read_text(), str(file))
    finally:
        gc.freeze()
        gc.enable()


@functools.cache
def functions(file: Path) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    found: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    left: list[ast.AST] = [tree(file)]
    while left:
        inner = [one for one in ast.iter_child_nodes(left.pop()) if isinstance(one, HOLD_BLOCKS)]
        found += (one for one in inner if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
        left += inner
    return tuple(found)


def module_name(file: Path) -> str:
    """Return the name of a module: `eventhub/event/__init__.py` is `eventhub.event`."""
    file = file.relative_to(CLIENT) if file.is_relative_to(CLIENT) else file
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
