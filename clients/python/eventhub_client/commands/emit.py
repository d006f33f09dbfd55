"""`eventhub emit`: stores events from an argument, a file or standard input in a stream.
Plain module.
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

import click
import orjson

from eventhub.base import limits
from eventhub_client.commands.exits import QUEUED, Failed, run
from eventhub_client.commands.filters import PairType
from eventhub_client.commands.output import say, show
from eventhub_client.commands.settings import Settings
from eventhub_client.http import Request, stream_path
from eventhub_client.outbox import Outbox
from eventhub_client.remote import HubClient
from eventhub_client.types import Receipt

_TYPES = {
    "native": "application/x-ndjson",
    "cloudevents": "application/cloudevents+json",
    "oif": "text/x-oif",
}


class Batch(NamedTuple):
    """Lines for one request; `first` is the number of the first in the input, from 1."""

    first: int
    lines: list[bytes]


@click.command()
@click.argument("stream")
@click.argument("event", required=False)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="A file with an event per line; - is standard input.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(tuple(_TYPES)),
    default="native",
    show_default=True,
    help="The format of a line.",
)
@click.option("--domain", help="The domain of the event of --type, --attribute and --key.")
@click.option("--type", "kind", help="See --domain.")
@click.option(
    "--attribute",
    "attributes",
    type=PairType(),
    multiple=True,
    help="name=value; 17 is a number, '\"17\"' a text. May be repeated.",
)
@click.option("--key", "event_key", help="The event's key, for keyed state.")
@click.option("--deliver-at", help="A time with its offset, at which it is stored.")
@click.option("--delay-ms", type=int, help="The milliseconds from now until it is stored.")
@click.option(
    "--outbox",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Queue in this file first; what the hub does not accept now is sent later.",
)
@click.option(
    "--wait",
    "wait_s",
    type=float,
    default=10.0,
    show_default=True,
    help="With --outbox: seconds to wait until the hub has stored it.",
)
@click.option(
    "--suppress",
    is_flag=True,
    help="Skip events that match no interest, on a stream that may be quenched.",
)
@click.pass_obj  # fmt: skip
def emit(settings: Settings, /, stream: str, event: str | None, **options: Any) -> None:
    """Store events in STREAM; they are durable when the command ends with status 0.

    EVENT is JSON. Without it and without --type, lines are read from standard input or --file. The
    hub's receipts are printed as JSON, a line for each request.

    \b
    eventhub emit orders '{"domain": "shop", "type": "order.placed", "attributes": {"total": 99}}'
    eventhub emit orders --domain shop --type order.placed --attribute total=99
    eventhub emit orders < events.ndjson
    eventhub emit orders --format cloudevents --file ce.ndjson
    eventhub emit orders --domain shop --type order.reminder --delay-ms 3600000
    eventhub emit orders --outbox till.outbox --domain shop --type order.placed
    eventhub emit debug --suppress < events.ndjson
    """
    lines = _lines(event, options)
    for name in ("outbox", "suppress"):
        if options[name] and options["form"] != "native":
            raise click.UsageError(f"--{name} takes the native format alone.")
    if options["outbox"]:
        if options["suppress"]:
            raise click.UsageError("An outbox sends every event: give --outbox or --suppress.")
        run(_queue(settings, stream, lines, options))
    elif options["suppress"]:
        run(_send_matched(settings, stream, lines))
    else:
        run(_send(settings, stream, lines, options["form"]))


def _lines(event: str | None, options: dict[str, Any]) -> Iterator[bytes]:
    """Return the events as lines."""
    if options["kind"] or options["domain"]:
        if event or options["file"]:
            raise click.UsageError("Give one of: an event, a file, --domain and --type.")
        made: dict[str, Any] = {"domain": options["domain"], "type": options["kind"]}
        made["attributes"] = dict(options["attributes"])
        more = {"key": "event_key", "deliver_at": "deliver_at", "delay_ms": "delay_ms"}
        made |= {to: options[name] for to, name in more.items() if options[name] is not None}
        return iter([orjson.dumps(made)])
    if event:
        return iter([event.encode()])
    path = options["file"]
    if path is None and sys.stdin.isatty():
        raise click.UsageError("There is no event: give EVENT, --file or standard input.")
    return _read(click.open_file(str(path or "-"), "rb"))


def _read(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        for line in file:
            if line.strip():
                yield line.strip()


def _batches(lines: Iterator[bytes]) -> Iterator[Batch]:
    """Yield batches of bounded size, in order."""
    held: list[bytes] = []
    first, size = 1, 0
    for number, line in enumerate(lines, 1):
        full = (
            len(held) == limits.OUTBOX_BATCH_EVENTS or size + len(line) > limits.OUTBOX_BATCH_BYTES
        )
        if held and full:
            yield Batch(first, held)
            first, held, size = number, [], 0
        held.append(line)
        size += len(line)
    if held:
        yield Batch(first, held)


async def _send(settings: Settings, stream: str, lines: Iterator[bytes], form: str) -> None:
    async with settings.hub() as hub:
        for batch in _batches(lines):
            for body in _bodies(batch, form):
                show_line(await _post(hub, stream, body, _TYPES[form]))


async def _send_matched(settings: Settings, stream: str, lines: Iterator[bytes]) -> None:
    # it imports the filter languages, which no other command needs: a fifth of the time to start
    quenching = import_module("eventhub_client.quench")
    async with settings.hub() as hub, quenching.Quench(hub, stream) as quench:
        for batch in _batches(lines):
            receipt = await hub.emit(stream, _objects(batch), suppress=quench)
            show_line(receipt, suppressed=len(receipt.suppressed))


def _bodies(batch: Batch, form: str) -> list[bytes]:
    return batch.lines if form == "cloudevents" else [b"\n".join(batch.lines)]


async def _post(hub: HubClient, stream: str, body: bytes, content_type: str) -> Receipt:
    headers = {"Content-Type": content_type}
    request = Request("POST", stream_path(stream, "events"), body, headers=headers)
    return Receipt.of((await hub.http.ask(request)).json)


def show_line(receipt: Receipt, **more: int) -> None:
    """Print the positions of the events."""
    ranges = [one._asdict() for one in receipt.ranges]
    found: dict[str, Any] = {"stream": receipt.stream, "ranges": ranges}
    found["duplicates"] = len(receipt.duplicates)
    if receipt.delayed:
        found["delayed"] = [{"timer": one.timer, "due_at": one.due_at} for one in receipt.delayed]
    found.update(more)
    click.echo(orjson.dumps(found).decode())


async def _queue(
    settings: Settings, stream: str, lines: Iterator[bytes], options: dict[str, Any]
) -> None:
    count = 0
    async with Outbox(options["outbox"], settings.url, settings.require_key()) as outbox:
        for batch in _batches(lines):
            await outbox.emit(stream, _objects(batch))
            count += len(batch.lines)
        status = await outbox.flush(options["wait_s"])
    pending, letters = status.pending, status.dead_letters
    show({"queued": count, "pending": pending, "dead_letters": letters})
    for blocked, problem in status.blocked.items():
        say(f"{blocked}: {problem}")
    if letters:
        say(f"The hub refuses some events: eventhub outbox dead-letters {options['outbox']}")
    if pending:
        message = (
            f"{pending} events are pending in {options['outbox']}, where they are safe. Send them"
            f" with: eventhub outbox send {options['outbox']}"
        )
        raise Failed(message, QUEUED)


def _objects(batch: Batch) -> list[dict[str, Any]]:
    return [_object(batch, at) for at in range(len(batch.lines))]


def _object(batch: Batch, at: int) -> dict[str, Any]:
    try:
        found = orjson.loads(batch.lines[at])
    except orjson.JSONDecodeError as error:
        raise Failed(f"Line {batch.first + at} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Failed(f"Line {batch.first + at} is not a JSON object.")
    return found
