"""The form of a migration: the digest of its statements, its release and its half of an upgrade.
Plain module.

To parse every migration takes 0.1 s, which each process of a hub would spend at its start. So
migration_forms.json has the forms, each beside a hash of the files that it was made from; a
migration that was changed since is parsed. `python -m eventhub.postgresql.schema` writes the file
again.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

KNOWN = Path(__file__).with_name("migration_forms.json")

# a name qualified by its module
_SQL_FILE = re.compile(r"[\w.]+\.sql\Z")
_MODULE = re.compile(r"(?:delivery|django|eventhub|registrations|sparkjobs)\.[\w.]+\Z")
# quoted SQL, which stays; in group 1 comments and space, which become one blank
_SQL = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|(--[^\n]*|/\*.*?\*/|\s)+", re.DOTALL)


class MigrationForm(NamedTuple):
    """The digest of a migration's statements, its release, and its half of an upgrade."""

    digest: str
    release: str
    half: str = "pre"


class _KnownForm(NamedTuple):
    """A form with its sources: `files` below the app's folder, and the hash of their content."""

    files: tuple[str, ...]
    sha256: str
    form: MigrationForm


def form_of(file: Path, name: str) -> MigrationForm:
    """Return the form of a migration, whose name is `app.stem`. The digest covers its code without
    docstrings and comments, and the SQL files that it names, without their line breaks. Raises
    ValueError if it names no release.
    """
    known = _known().get(name)
    if known is not None and _hash(file.parents[1], known.files) == known.sha256:
        return known.form
    return _parse(file).form


def forms_as_text(files: dict[str, Path]) -> str:
    """Return the content of migration_forms.json for migrations by their names, `app.stem`."""
    forms = {name: _parse(file) for name, file in sorted(files.items())}
    lines = (f"{json.dumps(name)}: {json.dumps(known)}" for name, known in forms.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


@cache
def _known() -> dict[str, _KnownForm]:
    """Return the forms of the file; none if it is missing."""
    if not KNOWN.is_file():
        return {}
    return {
        name: _KnownForm(tuple(files), sha256, MigrationForm(*form))
        for name, (files, sha256, form) in json.loads(KNOWN.read_bytes()).items()
    }


def _hash(folder: Path, files: tuple[str, ...]) -> str:
    """Return the hash of the files' content, "" if one is missing."""
    found = hashlib.sha256()
    for name in files:
        try:
            content = (folder / name).read_bytes()
        except FileNotFoundError:
            return ""
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def _parse(file: Path) -> _KnownForm:
    """Return the form of a migration from its code. Raises ValueError if it names no release."""
    folder = file.parents[1]
    tree = ast.parse(file.read_text())
    nodes = [*ast.walk(tree)]
    values = {
        target.id: str(node.value.value)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if "release" not in values:
        raise ValueError(f"{file} does not name its release; set `release`.")
    named = sorted(_sql_files(nodes))
    sql = [_only(folder / "sql", name) for name in named]
    digest = _digest(tree, nodes, sql)
    files = tuple(str(each.relative_to(folder)) for each in (file, *dict.fromkeys(sql)))
    form = MigrationForm(digest, values["release"], values.get("half", "pre"))
    return _KnownForm(files, _hash(folder, files), form)


def _digest(tree: ast.Module, nodes: list[ast.AST], sql: list[Path]) -> str:
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            del node.body[0]
    found = hashlib.sha256(ast.unparse(_WithoutModules().visit(tree)).encode())
    for each in sql:
        found.update(f"\0{each.name}\0{plain_sql(each.read_text())}".encode())
    return found.hexdigest()


def _only(folder: Path, name: str) -> Path:
    [found] = folder.rglob(name)
    return found


class _WithoutModules(ast.NodeTransformer):
    """Removes the modules of names: moving a module does not change a migration."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name(node.attr) if _MODULE.match(_dotted(node)) else node


def _dotted(node: ast.expr) -> str:
    """Return the text of a name with its modules; "" for another expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(names))) if isinstance(node, ast.Name) else ""


def _sql_files(nodes: list[ast.AST]) -> Iterator[str]:
    texts = (node.value for node in nodes if isinstance(node, ast.Constant))
    return (text for text in texts if isinstance(text, str) and _SQL_FILE.match(text))


def plain_sql(text: str) -> str:
    """Return the statements without comments, with one blank for any space outside of quotes."""
    return _SQL.sub(lambda found: " " if found[1] else found[0], text).strip()
