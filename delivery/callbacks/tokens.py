"""Access tokens of endpoints that authenticate with OAuth 2.0. A token is stored encrypted and used
by all workers; when it ends, one of them claims its row and requests the next one. SQL module.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, LiteralString, NamedTuple
from uuid import uuid4

import psycopg

from delivery.callbacks.client import HttpClient, MalformedResponse
from delivery.callbacks.oauth2 import IssuedToken, TokenUnavailable, read_issued_token
from delivery.callbacks.post import error_text
from delivery.callbacks.token_request import TokenRequest
from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.postgresql import queries
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, connect
from eventhub.postgresql.rows import fetch_one
from registrations.endpoints.secrets import Keyring, Unsealable

SQL = queries.load("delivery/sql/endpoint_tokens.sql")
_LOST = (DatabaseUnavailable, psycopg.Error, *CONNECTION_ERRORS)
_REQUEST_ERRORS = (OSError, UnicodeError, TimeoutError, MalformedResponse)


class AccessToken(NamedTuple):
    """A token that is valid until `until_s` on the monotonic clock; `obtained_us` identifies it."""

    text: str
    secret_id: int
    obtained_us: int
    until_s: float


class _StoredToken(NamedTuple):
    """The row of an endpoint. `is_claimed`: a worker requests a token, or, with an `error`, failed
    to a moment ago.
    """

    secret_id: int
    sealed: bytes | None
    obtained_us: int | None
    valid_s: float | None
    is_claimed: bool
    error: str | None


class _Obtained(NamedTuple):
    obtained_us: int


class TokenSource:
    """The tokens that one worker uses. `client` requests them, under the address guard."""

    def __init__(self, database_url: str, keyring: Keyring, client: HttpClient) -> None:
        self._database_url = database_url
        self._keyring = keyring
        self._client = client
        self._tokens: dict[int, AccessToken] = {}  # by endpoint
        self._locks: dict[int, asyncio.Lock] = {}  # of endpoints whose token is looked up
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()

    def close(self) -> None:
        self._disconnect()
        self._client.close()

    async def token(self, request: TokenRequest) -> AccessToken:
        """Return a valid token. Raises TokenUnavailable, also when it takes too long."""
        found = self._cached(request)
        if found is not None:
            return found
        if len(self._tokens) >= limits.CALLBACK_NAMES_CACHED_MAX:
            self._tokens.clear()
        lock = self._locks.setdefault(request.endpoint_id, asyncio.Lock())
        try:
            async with asyncio.timeout(limits.OAUTH2_TOKEN_S_MAX), lock:
                found = self._cached(request) or await self._look_up(request)
                self._tokens[request.endpoint_id] = found
                return found
        except TimeoutError:
            raise TokenUnavailable(f"no access token from {request.url} in time") from None
        except _LOST as error:
            raise TokenUnavailable("the hub's database does not answer") from error
        finally:
            if not lock.locked():
                self._locks.pop(request.endpoint_id, None)

    async def renewed(self, request: TokenRequest, rejected: AccessToken) -> AccessToken | None:
        """Return a newer token than one that the endpoint rejected; None if that was issued a
        moment ago, so that another one would be rejected too. Raises TokenUnavailable.
        """
        if self._tokens.get(request.endpoint_id) == rejected:
            del self._tokens[request.endpoint_id]
        age_s = limits.OAUTH2_TOKEN_AGE_S_MIN
        try:
            async with asyncio.timeout(limits.OAUTH2_TOKEN_S_MAX):
                await self._reject(request, rejected.obtained_us, age_s)
                found = await self.token(request)
        except TimeoutError:
            raise TokenUnavailable(f"no access token from {request.url} in time") from None
        except _LOST as error:
            raise TokenUnavailable("the hub's database does not answer") from error
        return None if found.obtained_us == rejected.obtained_us else found

    def _cached(self, request: TokenRequest) -> AccessToken | None:
        found = self._tokens.get(request.endpoint_id)
        if found is None or found.secret_id != request.secret_id:
            return None
        return found if found.until_s > time.monotonic() else None

    async def _look_up(self, request: TokenRequest) -> AccessToken:
        """Return the stored token, or request one, or wait for the worker that does."""
        claim = str(uuid4())
        values = {"endpoint": request.endpoint_id, "claim_s": limits.OAUTH2_CLAIM_S}
        while True:
            row = await self._fetch(_StoredToken, SQL["stored"], values)
            if row is not None and row.secret_id > request.secret_id:
                raise TokenUnavailable("the authentication has changed")
            if row is not None and row.secret_id == request.secret_id:
                found = await self._stored(row, request)
                if found is not None:
                    return found
                if row.is_claimed and row.error is not None:
                    raise TokenUnavailable(row.error)
                if row.is_claimed:
                    await asyncio.sleep(limits.OAUTH2_TOKEN_POLL_S)
                    continue
            if await self._claim(request, claim):
                return await self._request(request, claim)

    async def _stored(self, row: _StoredToken, request: TokenRequest) -> AccessToken | None:
        if row.sealed is None or row.obtained_us is None or row.valid_s is None or row.valid_s <= 0:
            return None
        try:
            text = self._keyring.unseal(row.sealed).decode()
        except Unsealable:  # encrypted under a former key: another one is requested
            await self._reject(request, row.obtained_us, 0.0)
            return None
        until_s = time.monotonic() + row.valid_s
        return AccessToken(text, row.secret_id, row.obtained_us, until_s)

    async def _reject(self, request: TokenRequest, obtained_us: int, age_s: float) -> None:
        """End a stored token that was issued at least `age_s` seconds ago."""
        values = {
            "endpoint": request.endpoint_id,
            "obtained_us": obtained_us,
            "age_s": age_s,
        }
        await self._execute(SQL["reject"], values)

    async def _claim(self, request: TokenRequest, claim: str) -> bool:
        values = {
            "endpoint": request.endpoint_id,
            "secret": request.secret_id,
            "claim": claim,
            "claim_s": limits.OAUTH2_CLAIM_S,
        }
        return await self._execute(SQL["claim"], values) == 1

    async def _request(self, request: TokenRequest, claim: str) -> AccessToken:
        """Request a token and store it, or the reason why there is none."""
        values: dict[str, Any] = {"endpoint": request.endpoint_id, "claim": claim}
        try:
            response = await self._client.send(
                request.origin, request.request, timeout_s=limits.OAUTH2_REQUEST_S_MAX
            )
            issued = read_issued_token(response)
        except (TokenUnavailable, *_REQUEST_ERRORS) as error:
            reason = _reason(request, error)
            paused = {"error": reason, "pause_s": limits.OAUTH2_FAILURE_PAUSE_S}
            await self._execute(SQL["fail"], {**values, **paused})
            raise TokenUnavailable(reason) from None
        used_s = _used_s(issued)
        sealed = self._keyring.seal(issued.text.encode())
        terms = {"sealed": sealed, "used_s": used_s}
        row = await self._fetch(_Obtained, SQL["store"], {**values, **terms})
        if row is None:
            raise TokenUnavailable("the authentication has changed")
        until_s = time.monotonic() + used_s
        return AccessToken(issued.text, request.secret_id, row.obtained_us, until_s)

    async def _fetch(self, kind: type[Any], statement: LiteralString, values: Any) -> Any:
        async with self._connected() as connection:
            return await fetch_one(connection, kind, statement, values)

    async def _execute(self, statement: LiteralString, values: Any) -> int:
        """Return the number of rows that the statement changed."""
        async with self._connected() as connection:
            return (await connection.execute(statement, values)).rowcount

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Connection]:
        """Lend the connection for one statement. It is closed if that fails or is cancelled."""
        async with self._connecting:
            if self._connection is None:
                self._connection = await connect(self._database_url, name="eventhub tokens")
            try:
                yield self._connection
            except BaseException:
                self._disconnect()
                raise

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()


def _used_s(issued: IssuedToken) -> float:
    """Return how long a token is used: it is replaced before it ends, as clocks and requests need
    some time.
    """
    return issued.lifetime_s - min(limits.OAUTH2_MARGIN_S, issued.lifetime_s / 10)


def _reason(request: TokenRequest, error: Exception) -> str:
    """Return why there is no token, without the secrets that a response may repeat."""
    return f"no access token from {request.url}: {error_text(error, request.secrets)}"
