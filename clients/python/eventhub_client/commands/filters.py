"""Options that several commands share: the start, the end and the filter. Plain module."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click
import orjson

from eventhub_client.types import At, Cursor, Start

F = TypeVar("F", bound=Callable[..., Any])
_WITH_SLASH = {"key", "path", "domain", "type"}  # arguments that may contain a slash


class StartType(click.ParamType[Start]):
    """A start: now, oldest, boot, <segment>:<sequence>, or a time with its offset."""

    name = "start"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Start:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        if value in ("now", "oldest", "boot"):
            return value  # type: ignore[return-value]
        with suppress(ValueError):
            return Cursor.parse(value)
        try:
            return At.of(value)
        except ValueError:
            message = f"{value!r} is not one of now, oldest, boot, <segment>:<sequence>, a time."
            return self.fail(message, param, ctx)


class PairType(click.ParamType[tuple[str, Any]]):
    """name=value; a value that is not JSON is a text."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        name, equals, text = str(value).partition("=")
        if not (name and equals):
            self.fail(f"{value!r} should be name=value.", param, ctx)
        try:
            return name, orjson.loads(text)
        except orjson.JSONDecodeError:
            return name, text


class PathPart(click.ParamType[str]):
    """An argument that becomes one part of a route's path."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        slash = "/" in text and (param is None or param.name not in _WITH_SLASH)
        if slash or text in ("", ".", ".."):
            self.fail(f"{text!r} is not a name: it is empty, a dot, or has a slash.", param, ctx)
        return text


_OPTIONS = (
    click.option(
        "--mask", metavar="N", help="Channel bits; an event passes if it has one of them."
    ),
    click.option("--channel", "channels", multiple=True, help="The same by name; may be repeated."),
    click.option("--domain", help="Only events of this domain."),
    click.option("--type", help="Only events of this type."),
    click.option(
        "--attribute",
        "attributes",
        type=PairType(),
        multiple=True,
        help="Only events that have this attribute; 17 is a number, '\"17\"' a text. May be"
        " repeated: all must be there.",
    ),
    click.option("--application", help="Only events of this application."),
    click.option("--filter", metavar="FILTER", help="Only events that match a filter,"
                 " such as \"(> total 9)\"; instead of the four options before."),
    click.option("--language", metavar="NAME", help="The language of --filter: predicate (by"
                 " default), propositional, ready, cel, cesql, eventbridge."),
)  # fmt: skip


count_option = click.option(
    "--count", type=click.IntRange(min=1), help="Stop after so many events."
)
cursor_file_option = click.option(
    "--cursor-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Continue where the last run with this file ended.",
)


def start_option(default: str, *, now: str = "now, ") -> Callable[[F], F]:
    """Return the option of a start; `now`: empty if the command ends at the present."""
    words = f"The start: {now}oldest, boot, <segment>:<sequence> or a time."
    return click.option(
        "--from", "start", type=StartType(), default=default, show_default=True, help=words
    )


def filters(command: F) -> F:
    """Add the options that choose events."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def filter_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the filter of the options, for `HubClient.listen`."""
    found: dict[str, Any] = {
        name: options[name] for name in ("domain", "type", "application") if options[name]
    }
    if options["attributes"]:
        found["attributes"] = dict(options["attributes"])
    if options["filter"] is not None:
        found.update(language=options["language"] or "predicate", filter=_source(options["filter"]))
    elif options["language"]:
        raise click.UsageError("--language is that of a --filter.")
    if options["mask"] and options["channels"]:
        raise click.UsageError("Give --mask or --channel, not both.")
    if options["mask"]:
        if not options["mask"].isdigit():
            raise click.UsageError("--mask is a whole number.")
        found["mask"] = int(options["mask"])
    if options["channels"]:
        found["mask"] = list(options["channels"])
    return found


def _source(text: str) -> Any:
    """Return the object of a JSON language, or the text of any other."""
    with suppress(orjson.JSONDecodeError):
        found = orjson.loads(text)
        return found if isinstance(found, dict) else text
    return text
