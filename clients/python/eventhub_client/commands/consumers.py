"""Who gets what `eventhub listen` hears: anything with `publish` (OIF-02). Plain module.

Each is given every event in order and has dealt with it when `publish` returns; what it raises as
ConsumerFailed ends the command, so that the cursor stays before the event.
"""

import asyncio
import os
import shlex
import signal
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

import aiohttp
import click
import orjson

from eventhub.base import limits
from eventhub_client.callbacks import sign
from eventhub_client.commands.output import ReceivedEvent, readable, say
from eventhub_client.listening import pause_s


class ConsumerFailed(Exception):
    """A consumer could not deal with an event."""


class Consumer(Protocol):
    """`publish` gets the event as a line of JSON, and its parts."""

    async def publish(self, told: ReceivedEvent) -> None: ...

    async def close(self) -> None: ...


class Printer:
    """Standard output."""

    def __init__(self, *, human: bool) -> None:
        self._human = human

    async def publish(self, told: ReceivedEvent) -> None:
        click.echo(readable(told.delivered) if self._human else told.text)

    async def close(self) -> None:
        pass


class FileAppender:
    """A log file, a line for each event."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    async def publish(self, told: ReceivedEvent) -> None:
        self._file.write(told.text + "\n")
        self._file.flush()

    async def close(self) -> None:
        self._file.close()


class SqliteWriter:
    """The table `events` of a SQLite database; an event that comes again changes nothing."""

    _SCHEMA = """
    CREATE TABLE IF NOT EXISTS events (
        stream TEXT, segment TEXT, sequence INTEGER, appended_at TEXT, domain TEXT, type TEXT,
        key TEXT, event TEXT, PRIMARY KEY (stream, segment, sequence)
    )"""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(self._SCHEMA)
        self._db.commit()

    async def publish(self, told: ReceivedEvent) -> None:
        delivered, event = told.delivered, told.delivered.event
        row = (
            *(told.stream, delivered.segment, delivered.sequence, delivered.appended_at),
            *(event["domain"], event["type"], event.get("key"), orjson.dumps(event).decode()),
        )
        try:
            with self._db:
                self._db.execute(
                    "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
                )
        except sqlite3.Error as error:
            message = f"Event {delivered.sequence} cannot be written: {error}."
            raise ConsumerFailed(message) from error

    async def close(self) -> None:
        self._db.close()


class RetryOptions(NamedTuple):
    """How hard a program or receiver is tried."""

    timeout_s: float
    tries: int
    skip: bool  # an event that failed for good is reported and left out, else the command ends


class ProgramRunner:
    """A program for each event, one at a time: the event on its standard input, its place in the
    environment. Status 0 is success; after the timeout it is ended with all it started.
    """

    def __init__(self, command: str, trying: RetryOptions) -> None:
        self._argv = shlex.split(command)
        self._trying = trying

    async def publish(self, told: ReceivedEvent) -> None:
        what = f"{self._argv[0]} failed for event {told.delivered.sequence}"
        await _tried(lambda: self._run(told), self._trying, what)

    async def close(self) -> None:
        pass

    async def _run(self, told: ReceivedEvent) -> str:
        """What went wrong; empty if nothing."""
        place = {
            "EVENTHUB_STREAM": told.stream,
            "EVENTHUB_SEGMENT": told.delivered.segment,
            "EVENTHUB_SEQUENCE": str(told.delivered.sequence),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                env={**os.environ, **place},
                start_new_session=True,
            )
        except OSError as error:
            return str(error)
        try:
            async with asyncio.timeout(self._trying.timeout_s):
                await process.communicate(told.text.encode() + b"\n")
        except TimeoutError:
            return f"not done within {self._trying.timeout_s:g} s"
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return f"exit status {process.returncode}" if process.returncode else ""


class Forwarder:
    """A POST to a URL for each event, as the hub's own callbacks: same body, same signatures, and
    the ids of the endpoint's deliveries, if it stands for one (else of its own).
    """

    def __init__(self, to: tuple[str, int | None], secret: str, trying: RetryOptions) -> None:
        self._url, endpoint = to
        self._endpoint = endpoint or "cli"
        self._secret = secret
        self._trying = trying
        timeout = aiohttp.ClientTimeout(total=trying.timeout_s)
        self._http = aiohttp.ClientSession(timeout=timeout)

    async def publish(self, told: ReceivedEvent) -> None:
        body = orjson.dumps(
            {
                "stream": told.stream,
                **told.delivered.cursor._asdict(),
                "appended_at": told.delivered.appended_at,
                "registrations": [],
                "event": told.delivered.event,
            }
        )
        segment = told.delivered.segment.replace("-", "")
        message = f"msg_{segment}_{told.delivered.sequence}_{self._endpoint}"
        what = f"{self._url} did not take event {told.delivered.sequence}"
        await _tried(lambda: self._post(message, body), self._trying, what)

    async def close(self) -> None:
        await self._http.close()

    async def _post(self, message: str, body: bytes) -> str:
        now_s = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "webhook-id": message,
            "webhook-timestamp": str(now_s),
            "webhook-signature": sign(self._secret, message, now_s, body),
        }
        try:
            async with self._http.post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                await answer.content.read(limits.CALLBACK_ANSWER_BYTES_READ_MAX)
                return "" if answer.ok and answer.status < 300 else f"status {answer.status}"
        except (aiohttp.ClientError, TimeoutError) as error:
            return str(error) or "no answer in time"


async def _tried(once: Callable[[], Awaitable[str]], trying: RetryOptions, what: str) -> None:
    """Until `once` says nothing; raises ConsumerFailed when it never does."""
    failure = ""
    for attempt in range(trying.tries):
        if attempt:
            await asyncio.sleep(pause_s(attempt))
        failure = await once()
        if not failure:
            return
    if not trying.skip:
        raise ConsumerFailed(f"{what}: {failure}")
    say(f"{what}: {failure}; left out.")
