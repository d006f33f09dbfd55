"""`eventhub outbox`: the pending events and dead letters of an outbox. Plain module."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from eventhub_client.commands.exits import QUEUED, Failed, run
from eventhub_client.commands.output import say, show
from eventhub_client.commands.settings import Settings
from eventhub_client.outbox import Outbox
from eventhub_client.outbox_file import OutboxError, OutboxFile

_FILE = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@contextmanager
def _opened(file: Path, *, read_only: bool) -> Iterator[OutboxFile]:
    """Open an outbox. Raises Failed with the file's fault."""
    try:
        with closing(OutboxFile(file, read_only=read_only)) as box:
            yield box
    except OutboxError as error:
        raise Failed(str(error)) from error


@click.group()
def outbox() -> None:
    """Inspect and send an outbox: a queue of events on this machine.

    \b
    eventhub emit orders --outbox till.outbox --domain shop --type order.placed
    eventhub outbox status till.outbox
    eventhub outbox send till.outbox --follow
    eventhub outbox dead-letters till.outbox
    """


@outbox.command()
@_FILE
def status(file: Path) -> None:
    """Show pending events, dead letters and the profile, also while a process has the file open."""
    with _opened(file, read_only=True) as box:
        profile = box.profile()._asdict()
        show({"pending": box.count(), "dead_letters": len(box.dead_letters()), "profile": profile})


@outbox.command()
@_FILE
@click.option("--follow", is_flag=True, help="Continue to send, also retries, until Ctrl-C.")
@click.option(
    "--wait",
    "wait_s",
    type=float,
    default=60.0,
    show_default=True,
    help="Seconds to wait until the hub has stored everything.",
)
@click.pass_obj  # fmt: skip
def send(settings: Settings, file: Path, follow: bool, wait_s: float) -> None:
    """Send the pending events of FILE, in order."""
    run(_send(settings, file, None if follow else wait_s))


async def _send(settings: Settings, file: Path, wait_s: float | None) -> None:
    async with Outbox(file, settings.url, settings.require_key()) as box:
        found = await box.flush(wait_s)
    for stream, problem in found.blocked.items():
        say(f"{stream}: {problem}")
    show({"pending": found.pending, "dead_letters": found.dead_letters})
    if found.pending:
        raise Failed(f"{found.pending} events are still pending in {file}.", QUEUED)


@outbox.command("dead-letters")
@_FILE
def dead_letters(file: Path) -> None:
    """Show the events that the hub will never accept as they are, each with its answer."""
    with _opened(file, read_only=True) as box:
        show([found._asdict() for found in box.dead_letters()])


@outbox.command()
@_FILE
@click.argument("number", type=int)
@click.pass_obj
def requeue(settings: Settings, file: Path, number: int) -> None:
    """Queue a dead letter again, after all that is pending."""

    async def again() -> None:
        async with Outbox(file, settings.url, settings.require_key()) as box:
            await box.requeue(number)
            found = await box.flush(10.0)
        show({"pending": found.pending, "dead_letters": found.dead_letters})

    run(again())


@outbox.command()
@_FILE
@click.argument("number", type=int)
def drop(file: Path, number: int) -> None:
    """Delete a dead letter and print it."""
    with _opened(file, read_only=False) as box:
        found: Any = box.drop(number)
    if found is None:
        raise Failed(f"There is no dead letter {number}.")
    show(found._asdict())
