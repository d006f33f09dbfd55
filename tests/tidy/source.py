"""What the tidy tests look at: the repository's files and their syntax trees."""

import ast
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
PACKAGES = ("eventhub", "registrations", "delivery")


@functools.cache
def tracked() -> tuple[Path, ...]:
    """Every file of the repository, relative to its folder, as far as it is there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=HOME, capture_output=True, check=True, text=True
    )
    files = (Path(name) for name in listed.stdout.split("\0") if name)
    return tuple(file for file in files if (HOME / file).is_file())


@functools.cache
def modules() -> tuple[Path, ...]:
    """Python written by hand: neither generated nor a migration."""
    return tuple(
        file
        for file in tracked()
        if file.suffix == ".py"
        and not file.name.endswith("_pb2.py")
        and "migrations" not in file.parts
    )


def product() -> tuple[Path, ...]:
    """The modules of the product, without its tests."""
    return tuple(file for file in modules() if file.parts[0] in PACKAGES)


@functools.cache
def tree(file: Path) -> ast.Module:
    return ast.parse((HOME / file).read_text(), str(file))


def functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def module_name(file: Path) -> str:
    """`eventhub/event/__init__.py` is `eventhub.event`."""
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
