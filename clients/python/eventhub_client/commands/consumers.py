"""The consumers of `eventhub listen`: anything with `publish` (OIF-02). Plain module.

Each gets every event in order and has handled it when `publish` returns. ConsumerFailed ends the
command, so that the cursor stays before the event.
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
    """A consumer could not handle an event."""


class Consumer(Protocol):
    """A receiver of events."""

    async def publish(self, received: ReceivedEvent) -> None: ...

    async def close(self) -> None: ...


class Printer:
    """Standard output."""

    def __init__(self, *, human: bool) -> None:
        self._human = human

    async def publish(self, received: ReceivedEvent) -> None:
        click.echo(readable(received.delivered) if self._human else received.text)

    async def close(self) -> None:
        pass


class FileAppender:
    """A log file, a line for each event."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    async def publish(self, received: ReceivedEvent) -> None:
        self._file.write(received.text + "\n")
        self._file.flush()

    async def close(self) -> None:
        self._file.close()


class SqliteWriter:
    """The table `events` of a SQLite database; a repeated event changes nothing."""

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

    async def publish(self, received: ReceivedEvent) -> None:
        delivered, event = received.delivered, received.delivered.event
        row = (
            *(received.stream, delivered.segment, delivered.sequence, delivered.appended_at),
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
    """The timeout and attempts of a program or receiver."""

    timeout_s: float
    attempts: int
    skip: bool  # an event that failed for good is reported and skipped; otherwise the command ends


class ProgramRunner:
    """A program that runs for each event, one at a time: the event on its standard input, its
    position in the environment. Status 0 is success; after the timeout its process group is killed.
    """

    def __init__(self, command: str, retry: RetryOptions) -> None:
        self._argv = shlex.split(command)
        self._retry = retry

    async def publish(self, received: ReceivedEvent) -> None:
        what = f"{self._argv[0]} failed for event {received.delivered.sequence}"
        await _with_retries(lambda: self._run(received), self._retry, what)

    async def close(self) -> None:
        pass

    async def _run(self, received: ReceivedEvent) -> str:
        """Run the program and return its failure, empty if there is none."""
        position = {
            "EVENTHUB_STREAM": received.stream,
            "EVENTHUB_SEGMENT": received.delivered.segment,
            "EVENTHUB_SEQUENCE": str(received.delivered.sequence),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                env={**os.environ, **position},
                start_new_session=True,
            )
        except OSError as error:
            return str(error)
        try:
            async with asyncio.timeout(self._retry.timeout_s):
                await process.communicate(received.text.encode() + b"\n")
        except TimeoutError:
            return f"not done within {self._retry.timeout_s:g} s"
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return f"exit status {process.returncode}" if process.returncode else ""


class PostForwarder:
    """A POST to a URL for each event, in the form of the hub's callbacks: same body, same
    signatures, and the ids of the endpoint's deliveries if it represents one.
    """

    def __init__(self, to: tuple[str, int | None], secret: str, retry: RetryOptions) -> None:
        self._url, endpoint = to
        self._endpoint = endpoint or "cli"
        self._secret = secret
        self._retry = retry
        timeout = aiohttp.ClientTimeout(total=retry.timeout_s)
        self._http = aiohttp.ClientSession(timeout=timeout)

    async def publish(self, received: ReceivedEvent) -> None:
        body = orjson.dumps(
            {
                "stream": received.stream,
                **received.delivered.cursor._asdict(),
                "appended_at": received.delivered.appended_at,
                "registrations": [],
                "event": received.delivered.event,
            }
        )
        segment = received.delivered.segment.replace("-", "")
        message = f"msg_{segment}_{received.delivered.sequence}_{self._endpoint}"
        what = f"{self._url} refused event {received.delivered.sequence}"
        await _with_retries(lambda: self._post(message, body), self._retry, what)

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


async def _with_retries(once: Callable[[], Awaitable[str]], retry: RetryOptions, what: str) -> None:
    """Call `once` until it reports no failure. Raises ConsumerFailed after the last attempt."""
    failure = ""
    for attempt in range(retry.attempts):
        if attempt:
            await asyncio.sleep(pause_s(attempt))
        failure = await once()
        if not failure:
            return
    if not retry.skip:
        raise ConsumerFailed(f"{what}: {failure}")
    say(f"{what}: {failure}; skipped.")
