"""Who may do what at the hot doors: grants and names cached, and dropped when `system` says so.
SQL module.

A cached answer counts only while the tail of `system` was confirmed within a second; otherwise the
database is asked, otherwise the caller gets 503 and open sockets wait. So a revocation is effective
within a second in every process. Concurrency contract: one event loop; `run` is one task.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, LiteralString, NamedTuple, TypeVar

from eventhub.access.keys import is_key
from eventhub.access.keys_sql import FIND_BY_DIGEST, FIND_BY_PUBLIC_ID, principal_of
from eventhub.access.operators_sql import FIND_LOGIN, operator_of
from eventhub.access.principal import Principal, narrow
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
from eventhub.event.envelope import DEFAULT_MASK
from eventhub.eventlog.log import Follower, Log
from eventhub.eventlog.read import find_stream
from eventhub.eventlog.stored import StreamInfo
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.postgresql.connections import reading

log = get_logger(__name__)
throttled = ThrottledLog(log)

_SYSTEM = StreamInfo(SYSTEM_STREAM_ID, None, "system")
_CHANNELS = "SELECT name, bit FROM channels WHERE zone_id = %s"


T = TypeVar("T")


class _Asked(NamedTuple):
    """A look-up under way."""

    begun_s: float
    found: "asyncio.Future[Any]"

    def may_be_shared(self, came_s: float) -> bool:
        """True for a request that came then. What has ended is not waited for: its error would come
        again and again without a pause.
        """
        return not self.found.done() and self.begun_s >= came_s - limits.LOOKUP_SHARED_S_MAX


class Authorizer:
    """The authoriser of one process."""

    def __init__(self, hub_log: Log, *, secret: str, clock: Clock) -> None:
        self._log = hub_log
        self._secret = secret
        self._clock = clock
        self._system: Follower | None = None
        self._keys: dict[bytes, Principal] = {}  # by digest of the credential
        self._streams: dict[tuple[int, str], StreamInfo] = {}
        self._channels: dict[int, dict[str, int]] = {}  # zone -> name -> bit; names keep their bit
        self._asked: dict[Any, _Asked] = {}  # look-ups under way, by what is looked up
        self.changes = 0  # rises with every change of a key; sockets then ask again
        self.wakers: set[asyncio.Event] = set()  # set with it

    def age_s(self) -> float:
        """Seconds since everything that `system` had said was applied here; infinite while it is
        not followed.
        """
        return self._age_s(asyncio.get_running_loop().time())

    def _age_s(self, now_s: float) -> float:
        system = self._system
        if system is None or system.ring.next != system.cursor.sequence + 1:
            return float("inf")
        return now_s - system.ring.confirmed_s

    def fresh(self) -> bool:
        """True while cached answers count."""
        now_s = asyncio.get_running_loop().time()
        self._log.tail.rely(now_s)
        return self._age_s(now_s) < limits.AUTHORISATION_FRESH_S_MAX

    async def confirmed(self) -> bool:
        """The same after a look at `system`, if nobody looked just now."""
        if not self.fresh():
            await asyncio.sleep(0)  # what woke the caller may have woken the authorizer too
        if not self.fresh():
            await self._log.tail.looked(limits.AUTHORISATION_FRESH_S_MAX)
        return self.fresh()

    async def authenticate(self, credential: str) -> Principal:
        """The principal of an API key or connection token.

        Raises Unauthenticated's kin, DatabaseUnavailable.
        """
        digest = hashlib.sha256(credential.encode()).digest()
        principal = self._keys.get(digest)
        if principal is None or not self.fresh() or self._over(principal):
            principal = await self._once(digest, lambda: self._look_up(credential, digest))
        if self._over(principal):
            raise InvalidCredentials if is_key(credential) else TokenExpired
        return principal

    def _over(self, principal: Principal) -> bool:
        """True when what was found no longer counts; an operator's login every second."""
        expires_at_us = principal.expires_at_us
        return expires_at_us is not None and expires_at_us <= self._clock.now_us()

    async def stream(self, principal: Principal, name: str) -> StreamInfo:
        """The stream of that name in the principal's zone;

        `system` is the hub's. What of it may change is at most a second old. Raises UnknownStream.
        """
        if name == "system":
            return _SYSTEM
        found = self._streams.get((principal.zone_id, name))
        if found is None or not self.fresh():
            key = (principal.zone_id, name)
            found = await self._once(key, lambda: self._find_stream(*key))
        return found

    async def _find_stream(self, zone_id: int, name: str) -> StreamInfo:
        streams = self._streams
        async with reading(self._log.lookups) as connection:
            found = await find_stream(connection, zone_id, name)
        if found is None:
            raise UnknownStream(stream=name[: limits.NAME_CHARS_MAX])
        streams[zone_id, name] = found
        return found

    async def mask(self, zone_id: int, names: Iterable[str]) -> int:
        """The bits of channel names in a zone. Raises UnknownChannel."""
        bits = self._channels.get(zone_id, {})
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
        """Follow `system` until cancelled, through every absence of the database."""
        while True:
            try:
                async with self._log.follow(SYSTEM_STREAM_ID, "now") as follower:
                    self._forget_all()  # what happened before `now` is not followed
                    self._system = follower
                    async for stored in follower:
                        self._apply(stored.event.type)
            except EventHubError as error:
                throttled.warning("system_not_followed", error=error.code)
            finally:
                self._system = None
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    def _apply(self, type: str) -> None:
        if type.startswith(("key.", "client.", "zone.")):
            self._forget_all()
        elif type.startswith("stream."):
            self._streams = {}  # a look-up under way writes into the old one

    def _forget_all(self) -> None:
        self._streams = {}
        self._keys.clear()
        self.changes += 1
        for waker in self.wakers:
            waker.set()

    async def _once(self, key: Any, look: Callable[[], Awaitable[T]]) -> T:
        """Return what a look-up finds, shared with all that ask for the same meanwhile: hundreds of
        requests of one client cost one look-up. One that began before this request and finds
        nothing proves nothing: the row may have come since.
        """
        clock = asyncio.get_running_loop().time
        came_s = clock()
        while True:
            asked = self._asked.get(key)
            if asked is None or not asked.may_be_shared(came_s):
                asked = self._asked[key] = _Asked(clock(), asyncio.ensure_future(look()))
                asked.found.add_done_callback(partial(self._forget_asked, key, asked))
            try:
                found: T = await asyncio.shield(asked.found)
                return found
            except (InvalidCredentials, UnknownStream):
                if asked.begun_s >= came_s:
                    raise

    def _forget_asked(self, key: Any, asked: "_Asked", done: "asyncio.Future[Any]") -> None:
        if self._asked.get(key) is asked:
            del self._asked[key]
        if not done.cancelled():
            done.exception()  # nobody may be there any more

    async def _look_up(self, credential: str, digest: bytes) -> Principal:
        claims = None
        if not is_key(credential):
            claims = read_token(self._secret, credential, self._clock)
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
        async with reading(self._log.lookups) as connection:
            cursor = await connection.execute(_CHANNELS, (zone_id,))
            bits = dict(await cursor.fetchall())
        self._channels[zone_id] = bits
        return bits


def _search(digest: bytes, claims: Claims | None) -> tuple[LiteralString, tuple[Any, ...]]:
    """The query, with its values, for what an API key or a token stands for."""
    if claims is None:
        return FIND_BY_DIGEST, (digest,)
    if isinstance(claims, LoginClaims):
        return FIND_LOGIN, (claims.zone_id, claims.user_id, claims.login, claims.login)
    return FIND_BY_PUBLIC_ID, (claims.public_id,)
