"""An operator's login for the command line, kept in a file that only its owner may read.
Plain module.
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import click
import msgspec
import orjson

from eventhub_client.commands.advice import in_commands
from eventhub_client.commands.exits import CREDENTIALS, USAGE, Failed
from eventhub_client.commands.output import say
from eventhub_client.errors import NotAllowed
from eventhub_client.http import Http, Request

SESSION = "/v1/session"
UNAUTHENTICATED = 401


@asynccontextmanager
async def session(url: str, cookies: Mapping[str, str]) -> AsyncIterator[Http]:
    """Give a connection that sends the cookies of a login, and what Django's protection against
    forged requests asks for.
    """
    base_url = url.rstrip("/")
    headers = {"Referer": f"{base_url}/"}
    if token := cookies.get("csrftoken"):
        headers["X-CSRFToken"] = token
    jar = aiohttp.CookieJar(unsafe=True)  # also for a hub that is named by its address
    async with aiohttp.ClientSession(cookies=cookies, cookie_jar=jar, headers=headers) as opened:
        yield Http(opened, base_url)


@asynccontextmanager
async def signed_in(url: str, *, operator: bool) -> AsyncIterator[Http]:
    """Give a connection with the saved login. Raises Failed without one, or if the hub has ended
    it. With `operator` a key would not serve instead.
    """
    cookies = _read().get(url)
    if cookies is None:
        why = (
            "Only an operator may do this. Sign in" if operator else "Set EVENTHUB_KEY, or sign in"
        )
        raise Failed(f"{why}: eventhub login NAME.", USAGE)
    async with session(url, cookies) as http:
        try:
            yield http
        except NotAllowed as error:
            if error.status != UNAUTHENTICATED:
                raise Failed(in_commands(str(error)), CREDENTIALS) from error
            message = "The login has expired or was ended. Log in again: eventhub login NAME."
            raise Failed(message, CREDENTIALS) from error


async def sign_in(url: str, name: str, password: str) -> None:
    """Sign in and save the login; a file of logins that is damaged is replaced. Raises Failed for a
    wrong password.
    """
    body = orjson.dumps({"username": name, "password": password})
    async with session(url, {}) as http:
        try:
            await http.ask(Request("POST", SESSION, body))
        except NotAllowed as error:
            raise Failed(str(error), CREDENTIALS) from error
        cookies = {cookie.key: cookie.value for cookie in http.session.cookie_jar}
    try:
        others = _read()
    except Failed:
        say(f"Warning: {_path()} was damaged; it is replaced, and has no other login now.")
        others = {}
    _write({**others, url: cookies})


async def sign_out(url: str) -> None:
    """Delete the login from the file and end it on the hub, which accepts it also after the end.
    Raises Failed if there is none.
    """
    logins = _read()
    cookies = logins.pop(url, None)
    if cookies is None:
        raise Failed(f"Nobody is logged in at {url}; there is nothing to end.", USAGE)
    _write(logins)
    async with session(url, cookies) as http:
        await http.ask(Request("DELETE", SESSION))


def _path() -> Path:
    """Return the file of logins: cookies by the hub's URL."""
    return Path(click.get_app_dir("eventhub")) / "logins.json"


def _read() -> dict[str, dict[str, str]]:
    """Return the saved logins. Raises Failed for a damaged file."""
    try:
        return msgspec.json.decode(_path().read_bytes(), type=dict[str, dict[str, str]])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        message = (
            f"{_path()} cannot be read: {error}. Delete it and log in again: eventhub login NAME."
        )
        raise Failed(message, USAGE) from error


def _write(logins: Mapping[str, Mapping[str, str]]) -> None:
    """Replace the file; it is never readable by others."""
    path = _path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(orjson.dumps(logins))
        part.replace(path)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error}", USAGE) from error
