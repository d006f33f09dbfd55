"""The authorizer of the hot routes: caches principals, streams and channels, and drops them when
`system` announces a change. SQL module.

A cached entry counts only while the tail of `system` was confirmed within a second. Otherwise the
database is asked; while it is unavailable, requests get 503 and open sockets wait. So a revocation
takes effect within a second in every process. Concurrency contract: one event loop; `run` is one
task.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, LiteralString, NamedTuple, TypeVar

from eventhub.access.addresses import require_allowed
from eventhub.access.credential_queries import (
    FIND_BY_DIGEST,
    FIND_BY_PUBLIC_ID,
    FIND_LOGIN,
    operator_of,
    principal_of,
)
from eventhub.access.keys import is_key
from eventhub.access.principal import Principal, narrow
from eventhub.access.rate_limits import EmitRateLimiter
from eventhub.access.sessions import (
    FIND_SESSION,
    ActingSession,
    SessionRow,
    UnknownSession,
    session_of,
)
from eventhub.access.tokens import Claims, LoginClaims, TokenClaims, read_token
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import (
    EventHubError,
    InvalidCredentials,
    TokenExpired,
    UnknownChannel,
    UnknownStream,
)
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.eventlog.errors import StreamDeleted, StreamDeleting
from eventhub.eventlog.log import Follower, Log
from eventhub.eventlog.read import find_stream
from eventhub.eventlog.stored import StreamInfo
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.postgresql.connections import reading
from eventhub.postgresql.rows import fetch_one

log = get_logger(__name__)
throttled = ThrottledLog(log)

_SYSTEM = StreamInfo(SYSTEM_STREAM_ID, None, "system")
_CHANNELS = "SELECT name, bit FROM channels WHERE zone_id = %s AND deleted_at IS NULL"


T = TypeVar("T")


class _Lookup(NamedTuple):
    """A look-up in progress."""

    started_s: float
    result: "asyncio.Future[Any]"

    def may_be_shared(self, requested_s: float) -> bool:
        """Return True if a request of that time may wait for it. A finished look-up is not shared:
        its error would be raised again and again without a pause.
        """
        return not self.result.done() and self.started_s >= requested_s - limits.LOOKUP_SHARED_S_MAX


class Authorizer:
    """The authorizer of one process."""

    def __init__(
        self, hub_log: Log, *, secret: str, clock: Clock, former_secrets: Sequence[str] = ()
    ) -> None:
        self._log = hub_log
        self._secrets = (secret, former_secrets)
        self._clock = clock
        self.rates = EmitRateLimiter(hub_log.lookups)
        self._system: Follower | None = None
        self._keys: dict[bytes, Principal] = {}  # by digest of the credential
        self._streams: dict[tuple[int, str], StreamInfo] = {}
        self._sessions: dict[tuple[int, str], ActingSession] = {}  # by client and name
        self._channels: dict[int, dict[str, int]] = {}  # zone -> name -> bit; a name keeps its bit
        self._lookups: dict[Any, _Lookup] = {}  # in progress, by key
        self.changes = 0  # rises with every change of a key; sockets then authenticate again
        self.wakers: set[asyncio.Event] = set()  # set with each change

    def age_s(self) -> float:
        """Return the seconds since the caches last reflected all of `system`; infinite while it is
        not followed.
        """
        return self._age_s(asyncio.get_running_loop().time())

    def _age_s(self, now_s: float) -> float:
        system = self._system
        if system is None or system.ring.next != system.cursor.sequence + 1:
            return float("inf")
        return now_s - system.ring.confirmed_s

    def fresh(self) -> bool:
        """Return True while cached entries count."""
        now_s = asyncio.get_running_loop().time()
        self._log.tail.keep_confirmed(now_s)
        return self._age_s(now_s) < limits.AUTHORISATION_FRESH_S_MAX

    async def confirmed(self) -> bool:
        """Return `fresh`, after a look at `system` if it was not read just now."""
        if not self.fresh():
            await asyncio.sleep(0)  # the event that woke the caller may wake the authorizer as well
        if not self.fresh():
            await self._log.tail.wait_for_poll(limits.AUTHORISATION_FRESH_S_MAX)
        return self.fresh()

    async def authenticate(self, credential: str) -> Principal:
        """Return the principal of an API key or connection token, which the present request may
        use from its address.

        Raises InvalidCredentials, TokenExpired, AddressNotAllowed, DatabaseUnavailable.
        """
        digest = hashlib.sha256(credential.encode()).digest()
        principal = self._keys.get(digest)
        if principal is None or not self.fresh() or self._expired(principal):
            principal = await self._once(digest, lambda: self._look_up(credential, digest))
        if self._expired(principal):
            raise InvalidCredentials if is_key(credential) else TokenExpired
        if principal.networks is not None:
            require_allowed(principal.networks)
        return principal

    async def through(self, principal: Principal, session: str) -> Principal:
        """Return the principal as it acts through the session of its client with that name.

        Raises UnknownSession, DatabaseUnavailable.
        """
        key = (principal.client_id, session)
        found = self._sessions.get(key)
        if found is None or not self.fresh():
            found = await self._once(("session", *key), lambda: self._find_session(*key))
        return principal._replace(session=found)

    async def _find_session(self, client_id: int, name: str) -> ActingSession:
        sessions = self._sessions
        async with reading(self._log.lookups) as connection:
            row = await fetch_one(connection, SessionRow, FIND_SESSION, (client_id, name))
        found = session_of(row)
        if len(sessions) >= limits.SESSIONS_CACHED_MAX:
            sessions.clear()
        sessions[client_id, name] = found
        return found

    def _expired(self, principal: Principal) -> bool:
        """Return True if the principal no longer counts; an operator's login counts a second."""
        expires_at_us = principal.expires_at_us
        return expires_at_us is not None and expires_at_us <= self._clock.now_us()

    async def stream(self, principal: Principal, name: str) -> StreamInfo:
        """Return the stream of that name in the principal's zone; `system` belongs to the hub. Its
        settings are at most a second old. Raises UnknownStream.
        """
        if name == "system":
            return _SYSTEM
        found = self._streams.get((principal.zone_id, name))
        if found is None or not self.fresh():
            key = (principal.zone_id, name)
            found = await self._once(key, lambda: self._find_stream(*key))
        return found

    async def lasting(self, principal: Principal, stream: StreamInfo) -> StreamInfo:
        """Return the stream, looked up again if it is to be deleted, so that the first emit after
        the deletion was withdrawn is accepted. Raises StreamDeleting, UnknownStream.
        """
        if stream.deletes_at_us is None:
            return stream
        key = (principal.zone_id, stream.name)
        return await self._once(("lasting", *key), lambda: self._find_lasting(*key))

    async def _find_lasting(self, zone_id: int, name: str) -> StreamInfo:
        found = await self._find_stream(zone_id, name)
        if found.deletes_at_us is not None:
            raise StreamDeleting.of(name, found.deletes_at_us)
        return found

    async def require_present(self, principal: Principal, stream: StreamInfo) -> None:
        """Raise StreamDeleted if the stream was deleted, also if there is a new one of its name."""
        try:
            found = await self.stream(principal, stream.name)
        except UnknownStream as error:
            raise StreamDeleted from error
        if found.id != stream.id:
            raise StreamDeleted

    async def _find_stream(self, zone_id: int, name: str) -> StreamInfo:
        streams = self._streams
        async with reading(self._log.lookups) as connection:
            found = await find_stream(connection, zone_id, name)
        if found is None:
            raise UnknownStream(stream=name[: limits.NAME_CHARS_MAX])
        streams[zone_id, name] = found
        return found

    async def mask(self, zone_id: int, names: Iterable[str]) -> int:
        """Return the tag mask of channel names in a zone. Raises UnknownChannel."""
        bits = self._channels.get(zone_id, {}) if self.fresh() else {}
        mask = 0
        for name in names:
            if name == "default":
                mask |= DEFAULT_MASK
                continue
            if name not in bits:
                bits = await self._load_channels(zone_id)
            if name not in bits:
                raise UnknownChannel(channel=name[: limits.NAME_CHARS_MAX])
            mask |= 1 << bits[name]
        return mask

    async def run(self) -> None:
        """Follow `system` until cancelled, also across outages of the database."""
        while True:
            try:
                async with self._log.follow(SYSTEM_STREAM_ID, "now") as follower:
                    self._forget_all()  # events before `now` are not followed
                    self._system = follower
                    async for stored in follower:
                        self._apply(stored.event)
            except EventHubError as error:
                throttled.warning("system_not_followed", error=error.code)
            finally:
                self._system = None
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    def _apply(self, event: Event) -> None:
        type = event.type
        if ".quota_" in type and event.attributes.get("kind") != "stored_bytes":
            return  # nothing here depends on the others
        if type.startswith(("key.", "client.", "zone.", "operator.")) or type == "stream.deleted":
            self._forget_all()
        elif type.startswith("stream."):
            self._streams = {}  # a look-up in progress writes to the old dict
        elif type.startswith("session."):
            self._sessions = {}  # likewise
        elif type == "channel.deleted":
            self._channels = {}

    def _forget_all(self) -> None:
        self._streams = {}
        self._sessions = {}
        self._channels = {}
        self._keys.clear()
        self.changes += 1
        for waker in self.wakers:
            waker.set()

    async def _once(self, key: Any, look_up: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a look-up, shared with all requests of the same key: hundreds of
        requests of one client cost one look-up. A look-up that started before this request and
        finds nothing is repeated: the row may have been inserted since.
        """
        clock = asyncio.get_running_loop().time
        requested_s = clock()
        while True:
            lookup = self._lookups.get(key)
            if lookup is None or not lookup.may_be_shared(requested_s):
                lookup = self._lookups[key] = _Lookup(clock(), asyncio.ensure_future(look_up()))
                lookup.result.add_done_callback(partial(self._end_lookup, key, lookup))
            try:
                found: T = await asyncio.shield(lookup.result)
                return found
            except (InvalidCredentials, StreamDeleting, UnknownSession, UnknownStream):
                if lookup.started_s >= requested_s:
                    raise

    def _end_lookup(self, key: Any, lookup: _Lookup, done: "asyncio.Future[Any]") -> None:
        if self._lookups.get(key) is lookup:
            del self._lookups[key]
        if not done.cancelled():
            done.exception()  # retrieved here, because its waiters may be cancelled

    async def _look_up(self, credential: str, digest: bytes) -> Principal:
        claims = None
        if not is_key(credential):
            secret, former_secrets = self._secrets
            claims = read_token(secret, credential, self._clock, *former_secrets)
        changes = self.changes
        principal = await self._find(digest, claims)
        if changes == self.changes:  # nothing was revoked while the row was read
            if len(self._keys) >= limits.KEYS_CACHED_MAX:
                self._keys.clear()
            self._keys[digest] = principal
        metrics.KEY_LOOKUPS.inc()
        return principal

    async def _find(self, digest: bytes, claims: Claims | None) -> Principal:
        query, values = _search(digest, claims)
        async with reading(self._log.lookups) as connection:
            cursor = await connection.execute(query, values)
            row = await cursor.fetchone()
        if row is None:
            raise InvalidCredentials
        if claims is None:
            return principal_of(row)
        if isinstance(claims, TokenClaims):
            return narrow(principal_of(row), claims)
        return narrow(operator_of(row, self._clock), claims)

    async def _load_channels(self, zone_id: int) -> dict[str, int]:
        channels = self._channels
        async with reading(self._log.lookups) as connection:
            cursor = await connection.execute(_CHANNELS, (zone_id,))
            bits = dict(await cursor.fetchall())
        channels[zone_id] = bits
        return bits


def _search(digest: bytes, claims: Claims | None) -> tuple[LiteralString, tuple[Any, ...]]:
    """Return the query that finds the live key or login of a credential, with its parameters."""
    if claims is None:
        return FIND_BY_DIGEST, (digest,)
    if isinstance(claims, LoginClaims):
        return FIND_LOGIN, (claims.zone_id, claims.user_id, claims.login, claims.login)
    return FIND_BY_PUBLIC_ID, (claims.public_id,)
