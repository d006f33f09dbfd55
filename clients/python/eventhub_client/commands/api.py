"""The commands of the management API: `eventhub registrations list` and every other operation, made
from the table api.json, which the hub's OpenAPI document gives. Plain module.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import click
import orjson

from eventhub_client.commands.advice import TABLE
from eventhub_client.commands.exits import run
from eventhub_client.commands.filters import PathPart
from eventhub_client.commands.output import show, table
from eventhub_client.commands.settings import Settings
from eventhub_client.http import JSON, Answer, Request

_COLUMNS_MAX = 7
_KINDS: dict[str, click.ParamType[Any]] = {
    "boolean": click.BOOL,
    "integer": click.INT,
    "number": click.FLOAT,
    "string": click.STRING,
}


class Field(NamedTuple):
    """A query parameter, a header or a field of the body; `kind` is the type's name in JSON."""

    name: str
    kind: str
    help: str
    required: bool

    @property
    def variable(self) -> str:
        """Its name among a command's parameters."""
        return "option_" + self.name.lower().replace("-", "_")

    def option(self) -> click.Option:
        """Return the option of a command, `--retain-age-s`."""
        kind = _KINDS.get(self.kind, JsonType())
        words = f"--{self.name.lower().replace('_', '-')}", self.variable
        metavar = None if self.kind == "boolean" else self.kind.upper()
        return click.Option(words, type=kind, help=self.help or None, metavar=metavar)


class JsonType(click.ParamType[Any]):
    """JSON; anything else counts as a text."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value


class Operation(NamedTuple):
    """One operation of the API; see eventhub/web/command_table.py, which writes the table."""

    words: list[str]
    method: str
    path: str
    help: str
    query: list[Field]
    headers: list[Field]
    body: list[Field] | None
    media: str
    operator: bool

    @property
    def arguments(self) -> list[str]:
        """The names in the path, in order."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    def request(self, arguments: tuple[str, ...], given: Mapping[str, Any]) -> Request:
        """Return the request for a command's parameters. Raises click.UsageError."""
        path = self.path
        for name, value in zip(self.arguments, arguments, strict=True):
            path = path.replace("{" + name + "}", quote(value, safe=""))
        query = {field.name: _text(given[field.variable]) for field in _set(self.query, given)}
        headers = {
            field.name: _quoted(given[field.variable]) for field in _set(self.headers, given)
        }
        body = self._body(given) if self.media else None
        if self.media and self.media != JSON:
            headers["Content-Type"] = self.media
        return Request(self.method, path, body, query, headers)

    def _body(self, given: Mapping[str, Any]) -> bytes | None:
        whole = given["data"]
        fields = {field.name: given[field.variable] for field in _set(self.body or [], given)}
        if whole is not None:
            if fields:
                raise click.UsageError("Give --data, or single fields, not both.")
            return _read(whole)
        missing = [field.name for field in self.body or [] if field.required] if not fields else []
        if missing:
            raise click.UsageError(f"Missing: --{missing[0].replace('_', '-')}, or --data.")
        return orjson.dumps(fields) if fields else None


def add_commands(main: click.Group) -> None:
    """Add a command for each operation to those that are there, which stay as they are."""
    helps: dict[str, str] = _table()["groups"]
    same: dict[tuple[str, ...], list[Operation]] = {}
    for operation in operations():
        same.setdefault(tuple(operation.words), []).append(operation)
    for words, variants in same.items():
        group = main
        for depth, word in enumerate(words[:-1], 1):
            found = group.commands.get(word)
            if found is None:
                found = click.Group(word, help=helps[" ".join(words[:depth])])
                group.add_command(found)
            if not isinstance(found, click.Group):
                break  # written by hand, with what is below it
            group = found
        else:
            if words[-1] not in group.commands:
                group.add_command(_command(words[-1], variants))


def operations() -> list[Operation]:
    """Return every operation of the table."""
    return [_operation(row) for row in _table()["commands"]]


def _table() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(TABLE.read_bytes())
    return found


def _operation(row: dict[str, Any]) -> Operation:
    lists = {name: [Field(*one) for one in row[name]] for name in ("query", "headers")}
    body = None if row["body"] is None else [Field(*one) for one in row["body"]]
    return Operation(**{**row, **lists, "body": body})


def _command(word: str, variants: list[Operation]) -> click.Command:
    """Return a command. If several operations share its name, the number of arguments decides."""
    longest = max(variants, key=lambda operation: len(operation.arguments))
    fewest = min(len(operation.arguments) for operation in variants)
    params: list[click.Parameter] = [
        click.Argument([name], required=number < fewest, type=PathPart())
        for number, name in enumerate(longest.arguments)
    ]
    names = set()
    for field in (*longest.query, *longest.headers, *(longest.body or ())):
        if field.variable not in names:
            params.append(field.option())
            names.add(field.variable)
    if longest.media:
        text = f"The whole body ({longest.media}); @FILE reads a file, - standard input."
        params.append(click.Option(("--data",), help=text, metavar="BODY"))
    params.append(click.Option(("--json", "as_json"), is_flag=True, help="JSON, no table."))

    @click.pass_obj
    def call(settings: Settings, /, as_json: bool, **given: Any) -> None:
        values = tuple(
            value for name in longest.arguments if (value := given[name.lower()]) is not None
        )
        chosen = next(one for one in variants if len(one.arguments) == len(values))
        request = chosen.request(values, given)
        run(_call(settings, request, as_json, operator=chosen.operator))

    return click.Command(word, params=params, callback=call, help=f"{longest.help}.")


async def _call(settings: Settings, request: Request, as_json: bool, *, operator: bool) -> None:
    async with settings.management(operator=operator) as http:
        _print(await http.ask(request), as_json)


def _print(answer: Answer, as_json: bool) -> None:
    """Print a page as a table, other JSON as it is, and anything else byte by byte."""
    if not answer.body:
        return
    if answer.headers.get("Content-Type", "").partition(";")[0] != JSON:
        sys.stdout.buffer.write(answer.body)
        return
    value = answer.json
    rows = value.get("items") if isinstance(value, dict) else None
    if as_json or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        show(value)
        return
    table(rows, _columns(rows))
    if value.get("next") is not None:
        click.echo(f"More: --after {value['next']}", err=True)


def _columns(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the first fields that fit in a cell in every row."""
    names = {name for row in rows for name, value in row.items() if isinstance(value, dict | list)}
    return tuple(name for name in (rows[0] if rows else ()) if name not in names)[:_COLUMNS_MAX]


def _set(fields: list[Field], given: Mapping[str, Any]) -> list[Field]:
    return [field for field in fields if given.get(field.variable) is not None]


def _text(value: Any) -> str:
    """Return a query parameter as the API reads it."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _quoted(value: str) -> str:
    """Return an entity tag: a sequence in quotes, and `*` as it is."""
    return value if value == "*" or value.startswith('"') else f'"{value}"'


def _read(text: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read()
    if not text.startswith("@"):
        return text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise click.UsageError(f"--data: {error}") from error
