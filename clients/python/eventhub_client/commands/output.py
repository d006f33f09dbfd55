"""The output of commands: events as lines, tables, progress. Plain module."""

import sys
import time
from typing import Any, NamedTuple

import click
import orjson

from eventhub_client.types import Delivered

_PROGRESS_S = 0.5


class ReceivedEvent(NamedTuple):
    """An event for consumers; `text` is one line of JSON."""

    stream: str
    delivered: Delivered
    text: str

    @classmethod
    def of(cls, stream: str, delivered: Delivered) -> "ReceivedEvent":
        return cls(stream, delivered, line(stream, delivered))


def line(stream: str, delivered: Delivered) -> str:
    """Return an event and its position as one line of JSON."""
    fields = {
        "stream": stream,
        "segment": delivered.segment,
        "sequence": delivered.sequence,
        "prev": delivered.prev,
        "liveness": delivered.liveness,
        "appended_at": delivered.appended_at,
        "event": delivered.event,
    }
    return orjson.dumps(fields).decode()


def readable(delivered: Delivered) -> str:
    """Return an event as a line of text for people."""
    event = delivered.event
    key = f"  key={event['key']}" if "key" in event else ""
    attributes = orjson.dumps(event.get("attributes", {})).decode()
    at = delivered.appended_at.replace("T", " ")[:19]
    what = f"{event['domain']} {event['type']}"
    return f"{at}  {delivered.sequence:>8}  {what:<32}{key}  {attributes}"


def say(text: str) -> None:
    """Print a message to standard error."""
    click.echo(text, err=True)


def show(value: Any) -> None:
    """Print indented JSON."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def table(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Print rows under their headings."""
    texts = [[_cell(row.get(name)) for name in columns] for row in rows]
    lines = [[name.upper() for name in columns], *texts]
    widths = [max(len(cells[at]) for cells in lines) for at in range(len(columns))]
    for cells in lines:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Progress:
    """A counter on the terminal; silent if the output is not a terminal."""

    def __init__(self, *, shown: bool | None = None) -> None:
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._started_s = self._shown_s = time.monotonic()
        self.count = 0

    def step(self, at: int, end: int | None) -> None:
        self.count += 1
        now_s = time.monotonic()
        if self._shown and now_s - self._shown_s >= _PROGRESS_S:
            self._shown_s = now_s
            share = f" of {end}, {100 * at // end} %" if end else ""
            rate = self.count / (now_s - self._started_s)
            click.echo(
                f"\r{self.count} events, at {at}{share}, {rate:,.0f}/s  ", nl=False, err=True
            )

    def done(self) -> None:
        if self._shown and self.count:
            click.echo("\r\x1b[K", nl=False, err=True)
