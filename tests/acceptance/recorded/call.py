"""One call of the recording, as a row of a table."""

from typing import Any, NamedTuple


class Call(NamedTuple):
    """A request to the management API.

    `who` is one of `Stage.keys`, `operator`, or `nobody`; `sql` and `file` are no calls: they write
    rows and files that only other processes would write. `line` is `METHOD /path`. Marks such as
    `<registration>` in the path, the body and the headers stand for values of earlier answers;
    `keep` says which of this answer are kept: a path into the body such as `items.0.id`, or a
    header. `measured` names fields whose values are other ones in each run.
    `body`: bytes as they are, None for none, anything else as JSON.
    """

    who: str
    line: str
    body: Any = None
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed
    keep: dict[str, str] = {}  # noqa: RUF012 - never changed
    measured: tuple[str, ...] = ()


def sql(statement: str) -> Call:
    """Return rows that workers or forwarders would write."""
    return Call("sql", statement)


def file(path: str, content: bytes) -> Call:
    """Return a file below the hub's data folder."""
    return Call("file", path, content)


def gets(who: str, *paths: str) -> list[Call]:
    return [Call(who, f"GET {path}") for path in paths]


def sends(who: str, line: str, *bodies: Any) -> list[Call]:
    """Return the same request with one body after the other."""
    return [Call(who, line, body) for body in bodies]


def if_match(value: str) -> dict[str, str]:
    return {"If-Match": value}


NEW = {"If-None-Match": "*"}
