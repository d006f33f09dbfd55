"""`eventhub relay`: copies a stream's events into another stream, transformed. Plain module."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import click
import orjson

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.event.errors import ImmutableProperty
from eventhub_client.commands.cursor_file import CursorFile
from eventhub_client.commands.exits import USAGE, Failed, run
from eventhub_client.commands.filters import (
    count_option,
    cursor_file_option,
    filter_of,
    filters,
    start_option,
)
from eventhub_client.commands.output import say
from eventhub_client.commands.settings import Given, Settings, settings
from eventhub_client.errors import Missing
from eventhub_client.refusal_action import action_after
from eventhub_client.remote import HubClient
from eventhub_client.transform import Switch
from eventhub_client.typecache import TypeCache
from eventhub_client.types import Cursor, Delivered, HubProblem

_INT63 = (1 << 63) - 1
_NEW = ("source", "id")  # set by the hub that takes it, or made here


class Relay(NamedTuple):
    """The two streams of a relay, their hubs, and the transformation."""

    stream: str
    to: str
    here: HubClient
    there: HubClient
    switch: Switch
    types: TypeCache


class Transformed(NamedTuple):
    """An event to emit, and the cursor of its source event."""

    cursor: Cursor
    event: dict[str, Any]


@click.command()
@click.argument("stream")
@click.argument("to")
@click.option("--to-url", default="", help="Another hub; without it the same.")
@click.option("--to-key-file", default="", help="The key for the other side (chmod 600).")
@click.option(
    "--switch",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A JSON file: transformers by the application that issued the event.",
)
@start_option("oldest")
@cursor_file_option
@click.option(
    "--on-immutable",
    type=click.Choice(("stop", "skip")),
    default="stop",
    show_default=True,
    help="If a transformer changes a property that the type declares immutable.",
)
@count_option
@filters
@click.pass_obj  # fmt: skip
def relay(given: Settings, /, stream: str, to: str, **options: Any) -> None:
    """Emit the events of STREAM into the stream TO, of this or another hub, until it is stopped.

    Each event is stored there once, however often the command is restarted. Domain, type, body,
    key, channels and application stay; `cause` names the source event. A switch chooses a
    transformer by application:

    \b
    {"billing": [{"rename": {"total": "amount"}}, {"set": {"currency": "CHF"}}],
     "*": [{"remove": ["internal"]}]}

    \b
    eventhub relay orders archive.orders --cursor-file relay.cursor
    eventhub relay orders partner --switch switch.json --to-url https://hub.example --to-key-file k
    """
    run(_relay(given, (stream, to), options))


async def _relay(given: Settings, names: tuple[str, str], options: dict[str, Any]) -> None:
    stream, to = names
    cursor_file = CursorFile(options["cursor_file"], stream)
    start = cursor_file.load() or options["start"]
    target = settings(Given(options["to_url"] or given.url, "", options["to_key_file"], ""))
    there = target if options["to_key_file"] else given._replace(url=target.url)
    async with given.hub() as here, there.hub() as other:
        await here.call("GET", "/healthz")
        copying = Relay(stream, to, here, other, _switch(options["switch"]), TypeCache(here))
        events = here.listen(stream, start=start, **filter_of(options))
        try:
            async with aclosing(batches(events, limits.RELAY_BATCH_EVENTS)) as found:  # type: ignore[type-var]
                await _pass(copying, found, cursor_file, options)
        finally:
            cursor_file.save()


async def _pass(
    relay: Relay,
    batches: AsyncIterator[list[Delivered]],
    cursor_file: CursorFile,
    options: dict[str, Any],
) -> None:
    left = options["count"]
    async for batch in batches:
        batch = batch[:left]
        made, failed = await _made(relay, batch, stop=options["on_immutable"] == "stop")
        async for cursor in stored(relay, made):
            cursor_file.moved(cursor)
        if failed is not None:
            raise failed
        cursor_file.moved(batch[-1].cursor)
        if left is not None:
            left -= len(batch)
            if not left:
                return


async def _made(
    relay: Relay, batch: list[Delivered], *, stop: bool
) -> tuple[list[Transformed], Failed | None]:
    """Return the events to emit of a batch, up to the first transformation that is refused."""
    made: list[Transformed] = []
    for delivered in batch:
        try:
            made.append(Transformed(delivered.cursor, await transformed(relay, delivered)))
        except ImmutableProperty as error:
            message = f"Event {delivered.cursor.text}: {error.field} is immutable"
            if stop:
                return made, Failed(f"{message}. --on-immutable skip skips it.")
            say(f"{message}; skipped.")
    return made, None


async def stored(relay: Relay, made: list[Transformed]) -> AsyncIterator[Cursor]:
    """Emit events in as few requests as the hub accepts; yield the source cursor of the last event
    stored. Raises Failed for the first that is refused, after those before it were stored, and
    HubProblem.
    """
    waiting, most = list(made), len(made)
    while waiting:
        part = _within(waiting[:most])
        try:
            events = [one.event for one in part]
            await relay.there.emit(relay.to, events, retry_for_s=limits.RELAY_RETRY_S)
        except HubProblem as problem:
            action = action_after(problem, len(part))
            if action.kind == "renumber":  # later ones are stored, so this one was, too
                del waiting[action.at]
            elif action.kind == "halve":
                most = len(part) // 2
            elif action.kind == "dead_letter" and action.at:  # those before it first
                most = action.at
            elif action.kind == "dead_letter":
                raise Failed(f"Event {part[0].cursor.text} is refused: {problem}") from problem
            else:
                raise
            continue
        del waiting[: len(part)]
        yield part[-1].cursor


def _within(made: list[Transformed]) -> list[Transformed]:
    """Return the first events that fit into one request, at least one."""
    size = 0
    for at, one in enumerate(made):
        size += len(orjson.dumps(one.event))
        if at and size > limits.OUTBOX_BATCH_BYTES:
            return made[:at]
    return made


async def transformed(relay: Relay, delivered: Delivered) -> dict[str, Any]:
    """Return the event to emit; its id follows from its source position, so a repeat is a
    duplicate.

    Raises ImmutableProperty.
    """
    try:
        definition = (await relay.types.parse(delivered)).definition
    except Missing:
        definition = None  # an undeclared version
    immutable = definition.immutable if definition else ()
    made = relay.switch.apply(delivered.event, immutable)
    return {
        **{name: value for name, value in made.items() if name not in _NEW},
        "id": {
            "incarnation": UUID(delivered.segment).int & _INT63,
            "sequence": delivered.sequence,
        },
        "cause": f"{relay.stream}:{delivered.cursor.text}",
    }


def _switch(path: Path | None) -> Switch:
    if path is None:
        return Switch({})
    try:
        return Switch.of(orjson.loads(path.read_bytes()))
    except orjson.JSONDecodeError as error:
        raise Failed(f"{path} is not JSON: {error}", USAGE) from error
    except EventHubError as error:
        raise Failed(f"{path}: {error.message} ({error.field})", USAGE) from error


class _End(NamedTuple):
    """The end of the events, with their error if they failed."""

    error: Exception | None = None


async def batches(events: AsyncIterator[Delivered], most: int) -> AsyncIterator[list[Delivered]]:
    """Yield the events that have arrived since the last batch: at least one, at most `most`.

    The next batch collects while the caller handles one, bounded by `most` too. Closes `events`;
    raises their error after the last batch.
    """
    arrived: asyncio.Queue[Delivered | _End] = asyncio.Queue(most)
    reading = asyncio.create_task(_read(events, arrived))
    try:
        end: _End | None = None
        while end is None:
            batch: list[Delivered] = []
            while not batch or (len(batch) < most and not arrived.empty()):
                item = await arrived.get()
                if isinstance(item, _End):
                    end = item
                    break
                batch.append(item)
            if batch:
                yield batch
        if end.error is not None:
            raise end.error
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read(events: AsyncIterator[Delivered], arrived: asyncio.Queue[Delivered | _End]) -> None:
    error = None
    try:
        async with aclosing(events):  # type: ignore[type-var]
            async for event in events:
                await arrived.put(event)
    except Exception as raised:
        error = raised
    await arrived.put(_End(error))
