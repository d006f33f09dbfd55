"""The high-water mark: the newest acknowledged event, stored outside of PostgreSQL. SQL module.

A database that was restored to an earlier state looks like one that has crashed. The mark
distinguishes them, so it must be stored where a restore of the database does not revert it: in the
memory of the machine (`file:///dev/shm/...`) or in a Redis of its own.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote, urlsplit

import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from eventhub.base import limits
from eventhub.base.compatibility import from_known_fields

_KEY = "eventhub:mark:"
_UNREADABLE = (redis.RedisError, OSError, TimeoutError, ValueError, TypeError)


class HighWaterMark(NamedTuple):
    """The newest event known to be acknowledged on a sync stream.

    `life`: of the database, as in `log_state.life`; `before`: the previous one, while the change to
    the new one may be uncommitted. Without a segment no event is known.
    """

    life: str
    before: str | None = None
    segment: str | None = None
    sequence: int = 0
    appended_at_us: int = 0


class MarkStore(Protocol):
    """The storage of marks, each under the key of its database."""

    async def read(self, key: str) -> HighWaterMark | None:
        """Return the mark; None if there is none or it cannot be read."""

    async def write(self, key: str, mark: HighWaterMark) -> bool:
        """Replace the mark; return False if it could not be written."""

    async def close(self) -> None:
        """Release connections."""


def open_mark_store(url: str) -> MarkStore:
    """Return the storage at a URL: `file:///folder`, `redis://...`, `unix:///socket`, or "" for the
    memory of this process.
    """
    parts = urlsplit(url)
    if not url:
        return MemoryMarkStore()
    if parts.scheme == "file":
        return FileMarkStore(Path(unquote(parts.path)))
    return RedisMarkStore(url)


class MemoryMarkStore:
    """Marks in the memory of this process: they distinguish a crash of the database from a restore
    while the process runs.
    """

    def __init__(self) -> None:
        self._marks: dict[str, HighWaterMark] = {}

    async def read(self, key: str) -> HighWaterMark | None:
        return self._marks.get(key)

    async def write(self, key: str, mark: HighWaterMark) -> bool:
        self._marks[key] = mark
        return True

    async def close(self) -> None:
        return


class FileMarkStore:
    """Marks as files in an existing folder. A file is replaced by a rename, so it is never half
    written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def read(self, key: str) -> HighWaterMark | None:
        try:
            return _parse(self._path(key).read_bytes())
        except _UNREADABLE:
            return None

    async def write(self, key: str, mark: HighWaterMark) -> bool:
        path = self._path(key)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            unfinished.write_bytes(_text(mark))
            unfinished.rename(path)
        except OSError:
            return False
        return True

    async def close(self) -> None:
        return

    def _path(self, key: str) -> Path:
        return self._folder / quote(key, safe="")


class RedisMarkStore:
    """Marks as values in Redis."""

    def __init__(self, url: str) -> None:
        self._redis = redis.asyncio.Redis.from_url(
            url,
            socket_timeout=limits.MARK_TIMEOUT_S_MAX,
            socket_connect_timeout=limits.MARK_TIMEOUT_S_MAX,
            retry=Retry(NoBackoff(), 0),
        )

    async def read(self, key: str) -> HighWaterMark | None:
        try:
            found = await self._redis.get(_KEY + key)
            return None if found is None else _parse(found)
        except _UNREADABLE:
            return None

    async def write(self, key: str, mark: HighWaterMark) -> bool:
        try:
            await self._redis.set(_KEY + key, _text(mark))
        except _UNREADABLE:
            return False
        return True

    async def close(self) -> None:
        await self._redis.aclose()


def _text(mark: HighWaterMark) -> bytes:
    return json.dumps(mark._asdict()).encode()


def _parse(text: bytes | str) -> HighWaterMark:
    """Parse a stored mark. Raises ValueError, TypeError."""
    return from_known_fields(HighWaterMark, json.loads(text))
