"""`eventhub outbox`: what waits on this machine, and what the hub will never take. Plain module."""

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
    """Raises Failed with what is wrong with the file."""
    try:
        with closing(OutboxFile(file, read_only=read_only)) as box:
            yield box
    except OutboxError as error:
        raise Failed(str(error)) from error


@click.group()
def outbox() -> None:
    """Look at and release an outbox: a queue of events on this machine.

    \b
    eventhub emit orders --outbox till.outbox --domain shop --type order.placed
    eventhub outbox status till.outbox
    eventhub outbox send till.outbox --follow
    eventhub outbox dead till.outbox
    """


@outbox.command()
@_FILE
def status(file: Path) -> None:
    """Show what waits, what is dead, and the profile; also while a process has the file."""
    with _opened(file, read_only=True) as box:
        profile = box.profile()._asdict()
        show({"waiting": box.count(), "dead": len(box.dead()), "profile": profile})


@outbox.command()
@_FILE
@click.option("--follow", is_flag=True, help="Stay, and release what is tried again, until Ctrl-C.")
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
    """Release what waits in FILE, in order."""
    run(_send(settings, file, None if follow else wait_s))


async def _send(settings: Settings, file: Path, wait_s: float | None) -> None:
    async with Outbox(file, settings.url, settings.require_key()) as box:
        found = await box.flush(wait_s)
    for stream, problem in found.held.items():
        say(f"{stream}: {problem}")
    show({"waiting": found.waiting, "dead": found.dead})
    if found.waiting:
        raise Failed(f"{found.waiting} events still wait in {file}.", QUEUED)


@outbox.command()
@_FILE
def dead(file: Path) -> None:
    """Show the events that the hub will not take as they are, each with its answer."""
    with _opened(file, read_only=True) as box:
        show([found._asdict() for found in box.dead()])


@outbox.command()
@_FILE
@click.argument("number", type=int)
@click.pass_obj
def requeue(settings: Settings, file: Path, number: int) -> None:
    """Send one of the dead once more, behind all that waits."""

    async def again() -> None:
        async with Outbox(file, settings.url, settings.require_key()) as box:
            await box.requeue(number)
            found = await box.flush(10.0)
        show({"waiting": found.waiting, "dead": found.dead})

    run(again())


@outbox.command()
@_FILE
@click.argument("number", type=int)
def drop(file: Path, number: int) -> None:
    """Forget one of the dead; it is printed."""
    with _opened(file, read_only=False) as box:
        found: Any = box.forget(number)
    if found is None:
        raise Failed(f"There is no dead event {number}.")
    show(found._asdict())
