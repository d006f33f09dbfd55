"""The hub and the key of a command: options, environment, or a file that only its owner may read.
Plain module.
"""

import os
import stat
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import click

from eventhub_client.commands import login
from eventhub_client.commands.exits import USAGE, Failed
from eventhub_client.http import Http
from eventhub_client.remote import HubClient

DEFAULT_URL = "http://127.0.0.1:8000"


class Settings(NamedTuple):
    """The hub and the API key of a command."""

    url: str
    key: str

    def hub(self) -> HubClient:
        """Return the hub's client. Raises Failed without a key."""
        return HubClient(self.url, self.require_key())

    @asynccontextmanager
    async def management(self, *, operator: bool = False, zone: str = "") -> AsyncIterator[Http]:
        """Give a connection to the management API, by the key; without one, or for what only an
        operator may do, by the login that `eventhub login` left. Raises Failed without either.
        """
        if self.key and not operator:
            async with self.hub() as hub:
                yield hub.http.in_zone(zone)
            return
        async with login.signed_in(self.url, operator=operator) as http:
            yield http.in_zone(zone)

    def require_key(self) -> str:
        if not self.key:
            raise Failed(
                "There is no key. Set EVENTHUB_KEY, or --key-file, or `key` in the configuration"
                f" file {default_path()} (chmod 600).",
                USAGE,
            )
        return self.key


class Given(NamedTuple):
    """Options, empty where not given."""

    url: str
    key: str
    key_file: str
    config: str


def default_path() -> Path:
    return Path(click.get_app_dir("eventhub")) / "config.toml"


def settings(given: Given) -> Settings:
    """Merge options, environment (click has merged both) and the file, in this order."""
    path = Path(given.config) if given.config else default_path()
    found = _read(path) if given.config or path.exists() else {}
    key = given.key or (_key_of(Path(given.key_file)) if given.key_file else "")
    if not key and "key_file" in found:
        key = _key_of(path.parent / Path(found["key_file"]).expanduser())
    url = given.url or found.get("url", DEFAULT_URL)
    return Settings(_without_login(url), _sendable(key or found.get("key", "")))


def _without_login(url: str) -> str:
    try:
        login = "@" in urlsplit(url).netloc
    except ValueError as error:
        raise Failed(f"The hub's URL is invalid: {error}.", USAGE) from error
    if login:
        raise Failed("The hub's URL contains a name or a password; use a key instead.", USAGE)
    return url


def _sendable(key: str) -> str:
    """Return a key that can be sent in a header. Raises Failed."""
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise Failed("This is not an API key: it contains spaces or control characters.", USAGE)
    return key


def _read(path: Path) -> dict[str, str]:
    text = _private(path)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Failed(f"{path}: {error}", USAGE) from error
    unknown = found.keys() - {"url", "key", "key_file"}
    if unknown or not all(isinstance(value, str) for value in found.values()):
        raise Failed(f"{path} may contain `url`, `key` and `key_file`, as texts.", USAGE)
    return found


def _key_of(path: Path) -> str:
    key = _private(path).strip()
    if not key:
        raise Failed(f"{path} is empty; it should contain an API key.", USAGE)
    return key


def _private(path: Path) -> str:
    """Read a file that others cannot read. Raises Failed."""
    try:
        with path.open() as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077 and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Failed(f"{path} can be read by others: chmod 600 {path}", USAGE)
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"{path} cannot be read: {error}", USAGE) from error
