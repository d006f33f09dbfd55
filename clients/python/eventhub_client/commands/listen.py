"""`eventhub listen` and `eventhub replay`: pass events to consumers. Plain module."""

import secrets
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any, NamedTuple

import click

from eventhub.base import limits
from eventhub_client.commands.consumers import (
    Consumer,
    ConsumerFailed,
    FileAppender,
    PostForwarder,
    Printer,
    ProgramRunner,
    RetryOptions,
    SqliteWriter,
)
from eventhub_client.commands.cursor_file import CursorFile
from eventhub_client.commands.exits import CONSUMER, USAGE, Failed, run
from eventhub_client.commands.filters import (
    F,
    count_option,
    cursor_file_option,
    filter_of,
    filters,
    start_option,
)
from eventhub_client.commands.output import Progress, ReceivedEvent, say
from eventhub_client.commands.settings import Settings
from eventhub_client.errors import NotAllowed
from eventhub_client.listening import Lost, OnGap
from eventhub_client.position import from_text
from eventhub_client.remote import HubClient
from eventhub_client.types import Cursor, Delivered, Start

_TRACES = "eventhub.traces"
_CONSUMERS = (
    click.option("--format", "form", type=click.Choice(("json", "text")), default="json",
                 help="The printed form: a line of JSON, or text for people."),
    click.option("--quiet", is_flag=True, help="Print no events."),
    click.option("--file", type=click.Path(dir_okay=False, path_type=Path),
                 help="Append each event as a line of JSON."),
    click.option("--sqlite", type=click.Path(dir_okay=False, path_type=Path),
                 help="Write each event into the table `events` of a SQLite database."),
    click.option("--exec", "program", metavar="COMMAND",
                 help="Run a program for each event, with the event on its standard input."),
    click.option("--forward", metavar="URL",
                 help="POST each event to a URL, signed like the hub's callbacks."),
    click.option("--forward-secret-file", type=click.Path(exists=True, path_type=Path),
                 help="A file with the signing secret `whsec_…`; default: EVENTHUB_FORWARD_SECRET,"
                 " or a new one that is shown."),
    click.option("--forward-endpoint", metavar="ID", type=click.IntRange(min=1),
                 help="The endpoint whose `webhook-id` the events carry; by default the client's"
                 " endpoint of that URL, if there is one."),
    click.option("--forward-secret", envvar="EVENTHUB_FORWARD_SECRET", hidden=True, default=""),
    click.option("--timeout", type=float, help="Seconds for a program or receiver."),
    click.option("--on-failure", type=click.Choice(("stop", "skip")), default="stop",
                 help="After three failures of a program or receiver: stop, or skip the event."),
    count_option,
    cursor_file_option,
)  # fmt: skip


def consumers(command: F) -> F:
    """Add the options that name the consumers."""
    for option in reversed(_CONSUMERS):
        command = option(command)
    return command


@click.command()
@click.argument("stream")
@start_option("now")
@click.option(
    "--transport",
    type=click.Choice(("websocket", "sse", "poll")),
    default="websocket",
    show_default=True,
    help="The transport.",
)
@click.option(
    "--on-gap",
    type=click.Choice(("stop", "continue")),
    default="stop",
    show_default=True,
    help="If the next events are no longer stored.",
)
@filters
@consumers
@click.pass_obj  # fmt: skip
def listen(settings: Settings, /, stream: str, **options: Any) -> None:
    """Receive the events of STREAM as they arrive, and pass each to the consumers.

    Reconnects and resumes automatically. The cursor file advances when every consumer has handled
    an event, so an event that was not handled is delivered again.

    \b
    eventhub listen orders
    eventhub listen orders --from oldest --type order.paid --attribute country=NO --format text
    eventhub listen orders --file orders.log --sqlite orders.db --cursor-file orders.cursor
    eventhub listen orders --exec 'python ship.py' --on-failure skip
    eventhub listen orders --forward http://localhost:3000/events --quiet
    """
    run(_listen(settings, stream, options))


async def _listen(settings: Settings, stream: str, options: dict[str, Any]) -> None:
    cursor_file = CursorFile(options["cursor_file"], stream)
    start = cursor_file.load() or options["start"]
    on_gap: OnGap = "raise" if options["on_gap"] == "stop" else _continue_after_gap
    async with settings.hub() as hub:
        await hub.call("GET", "/healthz")  # fail now if the hub is unreachable, rather than retry
        await _find_endpoint(hub, options)
        events = hub.listen(
            stream, start=start, transport=options["transport"], on_gap=on_gap, **filter_of(options)
        )
        await _consume(_Flow(stream, events, cursor_file, Progress(shown=False)), options)


def _continue_after_gap(error: Lost) -> Start:
    say(f"{error} Continuing at {from_text(error.resume)}.")
    return error.resume


@click.command()
@click.argument("stream")
@start_option("oldest", now="")
@click.option(
    "--until",
    metavar="SEQUENCE",
    type=click.IntRange(min=0),
    help="The last event; without it the last one at the start of the command.",
)
@filters
@consumers
@click.pass_obj  # fmt: skip
def replay(settings: Settings, /, stream: str, **options: Any) -> None:
    """Pass the stored events of STREAM, or a range of them, to the consumers; then stop.

    On a terminal a line shows the progress.

    \b
    eventhub replay orders > orders.ndjson
    eventhub replay orders --from 2026-11-21T08:00:00+01:00 --until 4711 --type order.paid
    """
    run(_replay(settings, stream, options))


@click.command()
@click.option("--follow", is_flag=True, help="Go on with new traces, until Ctrl-C.")
@start_option("oldest")
@filters
@consumers
@click.pass_obj  # fmt: skip
def traces(settings: Settings, /, follow: bool, **options: Any) -> None:
    """Pass the traces of API calls in the zone to the consumers, one line each.

    The zone must have traces on: `eventhub monitoring update --traces true`. The key needs the
    grant to manage `eventhub.traces`.

    \b
    eventhub traces --filter '(>= status 400)' --format text
    eventhub traces --follow --from now --filter '(= actor.client "till")' --file calls.log --quiet
    """
    if follow:
        run(_listen(settings, _TRACES, {**options, "transport": "websocket", "on_gap": "continue"}))
    else:
        run(_replay(settings, _TRACES, {**options, "until": None}))


async def _replay(settings: Settings, stream: str, options: dict[str, Any]) -> None:
    cursor_file = CursorFile(options["cursor_file"], stream)
    start = cursor_file.load() or options["start"]
    progress = Progress()
    async with settings.hub() as hub:
        await _find_endpoint(hub, options)
        walk = hub.walk(stream, start=start, **filter_of(options))

        async def within() -> AsyncIterator[Delivered]:
            async with aclosing(walk.events()) as events:  # type: ignore[type-var]
                async for delivered in events:
                    if options["until"] is not None and delivered.sequence > options["until"]:
                        return
                    progress.step(delivered.sequence, options["until"] or walk.head)
                    yield delivered

        await _consume(_Flow(stream, within(), cursor_file, progress), options)


async def _find_endpoint(hub: HubClient, options: dict[str, Any]) -> None:
    """Set the option `forward_endpoint` to the client's endpoint of the URL, if it has one, so that
    a receiver that stores each `webhook-id` handles no event twice.
    """
    url, after = options["forward"], ""
    while url and options["forward_endpoint"] is None:
        try:
            page = await hub.call("GET", f"/v1/endpoints?limit={limits.PAGE_ITEMS_MAX}{after}")
        except NotAllowed:  # a key that may not see endpoints
            return
        same = [item["id"] for item in page["items"] if item["url"] == url]
        options["forward_endpoint"] = same[0] if same else None
        if not page["next"]:
            return
        after = f"&after={page['next']}"


class _Flow(NamedTuple):
    """A stream of events for the consumers."""

    stream: str
    events: AsyncIterator[Delivered]
    cursor_file: CursorFile
    progress: Progress


async def _consume(flow: _Flow, options: dict[str, Any]) -> None:
    async with AsyncExitStack() as stack:
        events = await stack.enter_async_context(aclosing(flow.events))  # type: ignore[type-var]
        opened: list[Consumer] = []
        for consumer in _consumers(options):
            stack.push_async_callback(consumer.close)
            opened.append(consumer)
        stack.callback(flow.cursor_file.save)
        stack.callback(flow.progress.done)
        count = 0
        async for delivered in events:
            await _publish(ReceivedEvent.of(flow.stream, delivered), opened)
            flow.cursor_file.moved(delivered.cursor)
            count += 1
            if count == options["count"]:
                return


async def _publish(received: ReceivedEvent, consumers: list[Consumer]) -> None:
    try:
        for consumer in consumers:
            await consumer.publish(received)
    except ConsumerFailed as error:
        cursor: Cursor = received.delivered.cursor
        raise Failed(f"{error}. The event is {cursor.text}.", CONSUMER) from error


def _consumers(options: dict[str, Any]) -> list[Consumer]:
    """Open the consumers that the options name. Raises Failed."""
    skip = options["on_failure"] == "skip"
    found: list[Consumer] = []
    try:
        if options["file"]:
            found.append(FileAppender(options["file"]))
        if options["sqlite"]:
            found.append(SqliteWriter(options["sqlite"]))
    except Exception as error:
        raise Failed(str(error), CONSUMER) from error
    if options["program"]:
        seconds = options["timeout"] or limits.PROGRAM_TIMEOUT_S
        trying = RetryOptions(seconds, limits.CONSUMER_ATTEMPTS, skip)
        found.append(ProgramRunner(options["program"], trying))
    if options["forward"]:
        seconds = options["timeout"] or limits.FORWARD_LOCAL_TIMEOUT_S
        trying = RetryOptions(seconds, limits.CONSUMER_ATTEMPTS, skip)
        found.append(
            PostForwarder(
                (options["forward"], options["forward_endpoint"]), _secret(options), trying
            )
        )
    if not options["quiet"]:
        found.append(Printer(human=options["form"] == "text"))
    return found


def _secret(options: dict[str, Any]) -> str:
    path = options["forward_secret_file"]
    secret: str = path.read_text().strip() if path else options["forward_secret"]
    if not secret:
        secret = "whsec_" + b64encode(secrets.token_bytes(32)).decode()
        say(f"The receiver verifies with {secret}")
    if not secret.startswith("whsec_"):
        raise Failed("A signing secret begins with `whsec_`.", USAGE)
    return secret
