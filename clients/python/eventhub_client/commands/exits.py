"""The end of a command: its exit status, and an error that says what to do. Plain module."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any

import aiohttp
import click

from eventhub_client.commands.advice import in_commands
from eventhub_client.errors import GapError, NotAllowed, SegmentMismatchError, Unavailable
from eventhub_client.listening import UNREACHABLE
from eventhub_client.outbox_file import OutboxError
from eventhub_client.types import HubProblem, LossDetected

REFUSED = 1  # by the hub, or the input is wrong
USAGE = 2  # click's own
UNREACHABLE_HUB = 3  # no answer, or the hub is temporarily unable
CREDENTIALS = 4
GONE = 5  # a gap, or the cursor is of another log
CONSUMER = 6  # a consumer (program, file or receiver) failed
QUEUED = 7  # in the outbox, not yet in the hub
INTERRUPTED = 130
TERMINATED = 143


class Failed(click.ClickException):
    """An error of a command, with its exit status."""

    def __init__(self, message: str, status: int = REFUSED) -> None:
        super().__init__(message)
        vars(self)["exit_code"] = status  # click has it as the class's


def run(command: Coroutine[Any, Any, None]) -> None:
    """Run a command to its end; on Ctrl-C and SIGTERM it cleans up first."""
    try:
        asyncio.run(_until_terminated(command))
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except asyncio.CancelledError:
        raise SystemExit(TERMINATED) from None
    except BrokenPipeError:
        # the reader of the output has closed it
        _forget_output()
        raise SystemExit(0) from None
    except (HubProblem, LossDetected, OutboxError, *UNREACHABLE) as error:
        raise _failed(error) from error
    except OSError as error:
        _forget_output()
        raise Failed(f"The output cannot be written: {error}.", CONSUMER) from error


def _forget_output() -> None:
    """Discard buffered output, which Python would write at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(error: BaseException) -> Failed:
    """Return the message and exit status of an error."""
    if isinstance(error, GapError | SegmentMismatchError):
        return Failed(_gone(error), GONE)
    if isinstance(error, NotAllowed):
        return Failed(f"{_bare(error)}. Check the key and its grants.", CREDENTIALS)
    if isinstance(error, Unavailable):
        return Failed(f"{_bare(error)}. Try again later.", UNREACHABLE_HUB)
    if isinstance(error, HubProblem):
        return Failed(_refused(error))
    if isinstance(error, LossDetected):
        return Failed(f"{error} Run the command again from its last cursor.", GONE)
    if isinstance(error, OutboxError):
        return Failed(str(error))
    return Failed(_unreachable(error), UNREACHABLE_HUB)


def _bare(error: BaseException) -> str:
    return in_commands(str(error)).rstrip(".")


async def _until_terminated(command: Coroutine[Any, Any, None]) -> None:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await command


def _gone(error: GapError | SegmentMismatchError) -> str:
    if isinstance(error, SegmentMismatchError):
        return (
            "The cursor belongs to another log: the hub's was wiped, restored, or rebuilt after a"
            " crash. Earlier events may differ; --from oldest reads the log again."
        )
    missing = error.missing
    what = f"Events {missing.first} to {missing.last} are" if missing else "Some events are"
    return (
        f"{what} no longer stored. Continue after them with --from {error.resume.text}, or always"
        " with --on-gap continue."
    )


def _refused(error: HubProblem) -> str:
    place = {name: error.problem[name] for name in ("line", "column") if name in error.problem}
    position = ", ".join(f"{name} {value}" for name, value in (error.position | place).items())
    return in_commands(str(error)) + (f" ({position})" if position else "")


def _unreachable(error: BaseException) -> str:
    if isinstance(error, aiohttp.InvalidURL):
        return f"{error} is not the URL of a hub; set it with --url or EVENTHUB_URL."
    return f"The hub cannot be reached: {error or 'it does not answer'}. Is it running there?"
