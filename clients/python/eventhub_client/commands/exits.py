"""How a command ends: its exit status, and an error that says what to do. Plain module."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any

import aiohttp
import click

from eventhub_client.errors import GapError, NotAllowed, SegmentMismatchError, Unavailable
from eventhub_client.listening import UNREACHABLE
from eventhub_client.outbox_file import OutboxError
from eventhub_client.types import HubProblem, LossDetected

REFUSED = 1  # by the hub, or the input is wrong
USAGE = 2  # click's own
UNREACHABLE_HUB = 3  # nobody answers, or the hub cannot now
CREDENTIALS = 4
GONE = 5  # a gap, or another log behind the cursor
CONSUMER = 6  # a program, a file or a receiver that was to get events failed
QUEUED = 7  # in the outbox, not yet in the hub
INTERRUPTED = 130
TERMINATED = 143


class Failed(click.ClickException):
    """A message, and the exit status."""

    def __init__(self, message: str, status: int = REFUSED) -> None:
        super().__init__(message)
        vars(self)["exit_code"] = status  # click has it as the class's


def run(command: Coroutine[Any, Any, None]) -> None:
    """Run a command to its end. Ctrl-C and SIGTERM let it put its things in order."""
    try:
        asyncio.run(_until_told(command))
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except asyncio.CancelledError:
        raise SystemExit(TERMINATED) from None
    except BrokenPipeError:
        # whoever read our output has seen enough
        _forget_output()
        raise SystemExit(0) from None
    except (HubProblem, LossDetected, OutboxError, *UNREACHABLE) as error:
        raise _failed(error) from error
    except OSError as error:
        _forget_output()
        raise Failed(f"The output cannot be written: {error}.", CONSUMER) from error


def _forget_output() -> None:
    """What is left of it would be tried again at the very end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(error: BaseException) -> Failed:
    """What to say, and how to end: the first kind that fits."""
    if isinstance(error, GapError | SegmentMismatchError):
        return Failed(_gone(error), GONE)
    if isinstance(error, NotAllowed):
        return Failed(f"{_bare(error)}. Check the key, and what it may (its grants).", CREDENTIALS)
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
    return str(error).rstrip(".")


async def _until_told(command: Coroutine[Any, Any, None]) -> None:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await command


def _gone(error: GapError | SegmentMismatchError) -> str:
    if isinstance(error, SegmentMismatchError):
        return (
            "The log behind this cursor is another one now (wiped, restored, or rebuilt after a"
            " crash). What you have seen may differ from it; --from oldest reads it anew."
        )
    missing = error.missing
    what = f"Events {missing.first} to {missing.last} are" if missing else "Some events are"
    return (
        f"{what} no longer held. Go on behind them with --from {error.resume.text}, or always with"
        " --on-gap continue."
    )


def _refused(error: HubProblem) -> str:
    place = {name: error.problem[name] for name in ("line", "column") if name in error.problem}
    position = ", ".join(f"{name} {value}" for name, value in (error.position | place).items())
    return f"{error}" + (f" ({position})" if position else "")


def _unreachable(error: BaseException) -> str:
    if isinstance(error, aiohttp.InvalidURL):
        return f"{error} is no URL of a hub; give one with --url or EVENTHUB_URL."
    return f"The hub cannot be reached: {error or 'it does not answer'}. Is it running there?"
