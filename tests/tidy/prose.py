"""The prose linter: `python -m tests.tidy.prose [PATH…]` (`make lint-prose`) lists words that are
not written, by file and line, and docstrings of functions that do not begin with a verb. The word
list is words.toml.
"""

import argparse
import ast
import gc
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.tidy.source import HOME, tracked, tree

_LIST = tomllib.loads((Path(__file__).parent / "words.toml").read_text())
INSTEAD: dict[str, str] = _LIST["instead"]
ALLOWED: dict[str, list[str]] = _LIST["allow"]
VERBS = frozenset(_LIST["verbs"]["imperative"].split())
WRITTEN = {
    ".css",
    ".cpp",
    ".h",
    ".html",
    ".lua",
    ".md",
    ".proto",
    ".py",
    ".sql",
    ".toml",
    ".ts",
    ".tsx",
}
# generated, or data of others
EXCLUDED = re.compile(r"_pb2\.pyi?$|tests/acceptance/recorded/|package(-lock)?\.json$")
_WORD = re.compile(r"[A-Z]?[a-z]+")


class Offence(NamedTuple):
    """A word or docstring to mend."""

    file: Path
    line: int
    message: str


def unwritten_words(file: Path) -> Iterator[Offence]:
    """Yield each word of a file that has a better one, identifiers taken apart."""
    allowed = ALLOWED.get(str(file), [])
    text = (HOME / file).read_text()
    unwritten = _words(text) & INSTEAD.keys() - set(allowed)
    if not unwritten or "*" in allowed:
        return
    for number, line in enumerate(text.splitlines(), 1):
        for word in _words(line) & unwritten:
            yield Offence(file, number, f'"{word}": write {INSTEAD[word]}')


def _words(text: str) -> set[str]:
    return {found.lower() for found in set(_WORD.findall(text))}


def docstrings_without_verb(file: Path) -> Iterator[Offence]:
    """Yield each function whose docstring does not begin with a verb in the imperative."""
    for node in ast.walk(tree(file)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("test_"):  # its name says what it shows
            continue
        first = re.match(r"\W*(\w+)", ast.get_docstring(node) or "")
        if first and first[1].lower() not in VERBS and not _is_noun(node):
            yield Offence(file, node.lineno, f'{node.name}: "{first[1]} …" is no verb')


def _is_noun(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether the function is a property, whose docstring names what it is."""
    names = {ast.unparse(item).split(".")[-1] for item in node.decorator_list}
    return bool(names & {"property", "cached_property", "setter"})


def texts() -> Iterator[Path]:
    """Yield the files that people read: code, SQL, documents, screens."""
    for file in tracked():
        if file.suffix in WRITTEN and not EXCLUDED.search(str(file)):
            yield file


def offences(within: tuple[str, ...] = ("",)) -> list[Offence]:
    """Return what is to be mended below the given paths."""
    files = [file for file in texts() if str(file).startswith(within)]
    code = [file for file in files if file.suffix == ".py"]
    return [
        *(offence for file in files for offence in unwritten_words(file)),
        *(offence for file in code for offence in docstrings_without_verb(file)),
    ]


def main() -> int:
    """Print the offences; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", metavar="PATH", default=[""], help="files or folders")
    gc.disable()  # all syntax trees are kept: going through them again takes most of the time
    found = offences(tuple(parser.parse_args().paths))
    for offence in sorted(found):
        print(f"{offence.file}:{offence.line}: {offence.message}")
    print(f"{len(found)} to mend" if found else "The prose is clean.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
