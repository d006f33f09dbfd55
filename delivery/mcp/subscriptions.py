"""Subscriptions of MCP Events by webhook: `events/subscribe` and `events/unsubscribe`. A
subscription is a registration with an endpoint of its own, created, changed and deleted by requests
of the API with the caller's credential. Plain module.

Its key is derived from the client, the URL, the event type and the arguments, so a subscription is
found again by what it is.
"""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import orjson
from msgspec import UNSET, Meta, UnsetType

from delivery.mcp.errors import (
    CALLBACK_ENDPOINT,
    FORBIDDEN,
    NOT_FOUND,
    UNSUPPORTED,
    RpcError,
    invalid_params,
    not_found,
    rpc_problem,
)
from delivery.mcp.events import EventMethods, ReadParams, SubscriptionStart, read_params
from delivery.mcp.inner_requests import App, InnerRequest, McpCaller, send_inner
from delivery.mcp.statements import SubscriptionRow, find_subscription, watermark
from eventhub.base import limits
from eventhub.base.errors import EventHubError, LimitReached
from eventhub.eventlog.log import Log
from eventhub.eventlog.start_positions import cursor_text
from eventhub.eventlog.stored import Cursor
from registrations.endpoints.addresses import is_public, plain_address
from registrations.endpoints.secrets import Keyring, parse_secret
from registrations.errors import KeyTaken

_HEADER = "x-mcp-subscription-id"
_FIELDS = {"url": "delivery.url", "secret": "delivery.secret", "filter": "arguments.filter"}
_REASONS = {"timeout": "timeout", "tls": "tls_error"}


class DeliveryParams(msgspec.Struct):
    """Where events are posted."""

    url: str
    secret: str = ""
    mode: str = "webhook"


class SubscribeParams(msgspec.Struct, rename="camel"):
    """The parameters of `events/subscribe` and `events/unsubscribe`."""

    name: str
    delivery: DeliveryParams
    arguments: dict[str, Any] = {}
    cursor: str | None = None
    max_age_ms: Annotated[int, Meta(ge=0)] | None = None
    ttl_ms: Annotated[int, Meta(ge=1)] | UnsetType | None = UNSET


class _Grant(NamedTuple):
    """The lifetime of a subscription. `expires_at`: None: it does not expire."""

    expires_at: datetime | None

    @property
    def text(self) -> str | None:
        return None if self.expires_at is None else self.expires_at.isoformat()


class SubscriptionMethods:
    """The methods of subscriptions in one process. `app` answers requests of the API."""

    def __init__(self, events: EventMethods, log: Log, app: App, keyring: Keyring) -> None:
        self._events = events
        self._log = log
        self._app = app
        self._keyring = keyring

    async def subscribe(self, caller: McpCaller, params: dict[str, Any]) -> dict[str, Any]:
        """Create a subscription, or refresh it. Raises RpcError, and what a listener raises."""
        given = read_params(SubscribeParams, params)
        _checked(given)
        principal = caller.events.principal
        if principal.is_operator:
            raise RpcError(FORBIDDEN, "Subscriptions belong to clients; use an API key of one.")
        read = ReadParams(given.name, given.arguments, given.cursor, given.max_age_ms)
        start = await self._events.locate(caller.events, read)
        key, grant = _key_of(caller, given), _grant(given.ttl_ms)
        found = await self._settled(caller, key)
        if found is not None and not found.verified:  # the request that made it was interrupted
            await self._remove(caller, found.registration, found.endpoint)
            found = None
        if found is None:
            try:
                at = await self._create(caller, given, start, grant)
                return _answer(key, grant, at, truncated=start.truncated)
            except RpcError as error:
                if error.data.get("code") != KeyTaken.code:
                    raise
                # the same request makes it at the same time, or it was given another endpoint
                if await self._settled(caller, key) is None:
                    raise
            found = await self._agreed(caller, key)
        await self._refresh(caller, found, given, grant)
        status = {"deliveryStatus": _status_of(found)}
        at = await watermark(self._log, found) or start.cursor
        return _answer(key, grant, at, truncated=False) | status

    async def unsubscribe(self, caller: McpCaller, params: dict[str, Any]) -> dict[str, Any]:
        """Delete a subscription. Raises RpcError."""
        given = read_params(SubscribeParams, params)
        key = _key_of(caller, given)
        found = await find_subscription(self._log, caller.events.principal.client_id, key)
        if found is None:
            raise not_found("subscription", "There is no such subscription.")
        if found.enabled:  # else its receiver would be notified that it has ended
            await self._ask(caller, "PATCH", f"/v1/endpoints/{found.endpoint}", {"enabled": False})
        await self._remove(caller, found.registration, found.endpoint)
        return {}

    async def _remove(self, caller: McpCaller, registration: int | None, endpoint: int) -> None:
        """Delete what is left of a subscription; another request may do so at the same time."""
        paths = [] if registration is None else [f"/v1/registrations/{registration}"]
        for path in (*paths, f"/v1/endpoints/{endpoint}"):
            try:
                await self._ask(caller, "DELETE", path)
            except RpcError as error:
                if error.code != NOT_FOUND:
                    raise

    async def _create(
        self, caller: McpCaller, given: SubscribeParams, start: SubscriptionStart, grant: _Grant
    ) -> Cursor:
        """Create a subscription, have its receiver agree, and send what it missed; return where it
        starts. Nothing is left of one that fails.
        """
        key = _key_of(caller, given)
        made = await self._ask(caller, "POST", "/v1/endpoints", _endpoint(given, key, grant))
        endpoint, registration = made["id"], None
        body = {"key": key, "streams": [start.stream], "endpoint": endpoint, **start.filter}
        try:
            made = await self._ask(caller, "POST", "/v1/registrations", body)
            registration = made["id"]
            await self._agreed(caller, key)
        except (RpcError, EventHubError):
            await self._remove(caller, registration, endpoint)
            raise
        live = Cursor(**made["from"][start.stream])
        if given.cursor is None or start.cursor.sequence >= live.sequence:
            return live
        span = {"from": cursor_text(start.cursor), "to": cursor_text(live)}
        replay = {"endpoint": endpoint, "registration": registration, **span}
        await self._ask(caller, "POST", "/v1/replays", replay)
        return start.cursor

    async def _agreed(self, caller: McpCaller, key: str) -> SubscriptionRow:
        """Wait until the receiver has agreed to deliveries. Raises RpcError if it does not."""
        found = await self._settled(caller, key)
        if found is None:
            raise not_found("subscription", "The subscription was deleted meanwhile.")
        if found.verified:
            return found
        if found.verification is None:
            raise _refused("timeout")
        raise _refused(_reason_of(found.verification, found.verification_status))

    async def _settled(self, caller: McpCaller, key: str) -> SubscriptionRow | None:
        """Return the subscription with a key, after its receiver has answered or had the time to;
        None if there is none.
        """
        principal = caller.events.principal
        until_s = asyncio.get_running_loop().time() + limits.MCP_VERIFICATION_S_MAX
        with await self._events.admit(principal):
            while True:
                found = await find_subscription(self._log, principal.client_id, key)
                if found is None or found.verified or found.verification is not None:
                    return found
                if asyncio.get_running_loop().time() >= until_s:
                    return found
                await asyncio.sleep(limits.MCP_VERIFICATION_INTERVAL_S)

    async def _refresh(
        self, caller: McpCaller, found: SubscriptionRow, given: SubscribeParams, grant: _Grant
    ) -> None:
        """Replace the secret of a subscription, grant it more time, and resume its deliveries."""
        path = f"/v1/endpoints/{found.endpoint}"
        if self._keyring.unseal(found.secret) != parse_secret(given.delivery.secret):
            await self._replace_secret(caller, path, given.delivery.secret)
        change: dict[str, Any] = {"expires_at": grant.text}
        if not found.enabled:
            change["enabled"] = True
        await self._ask(caller, "PATCH", path, change)

    async def _replace_secret(self, caller: McpCaller, path: str, secret: str) -> None:
        """Replace the secret of an endpoint. Those before it sign too for a time, unless there are
        too many of them.
        """
        body = {"secret": secret, "overlap_s": limits.MCP_SECRET_OVERLAP_S}
        try:
            await self._ask(caller, "POST", f"{path}/secrets", body)
        except RpcError as error:
            if error.data.get("code") != LimitReached.code:
                raise
            await self._ask(caller, "POST", f"{path}/secrets", {**body, "overlap_s": 0})

    async def _ask(
        self, caller: McpCaller, method: str, path: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the answer to a request of the caller. Raises RpcError for a refusal."""
        answer = await send_inner(self._app, caller.scope, InnerRequest(method, path, b"", body))
        found: dict[str, Any] = orjson.loads(answer.body) if answer.body else {}
        if answer.status >= 400:
            raise rpc_problem(found, _FIELDS)
        return found


def _checked(given: SubscribeParams) -> None:
    """Check the delivery of a subscription. Raises RpcError."""
    delivery = given.delivery
    if delivery.mode != "webhook":
        data = {"feature": "deliveryMode", "value": delivery.mode}
        raise RpcError(UNSUPPORTED, "A subscription is delivered by `webhook`.", data)
    try:
        url = urlsplit(delivery.url)
    except ValueError:
        raise invalid_params("This is not a URL.", "delivery.url") from None
    if url.scheme != "https" and not (url.scheme == "http" and _is_local(url.hostname or "")):
        raise invalid_params("The URL must be an https URL.", "delivery.url")
    try:
        parse_secret(delivery.secret)
    except ValueError as error:
        raise invalid_params(str(error), "delivery.secret") from None


def _is_local(host: str) -> bool:
    """Return whether a host is an address that an operator has to allow, as for a receiver beside
    the hub in development.
    """
    address = plain_address(host)
    return address is not None and not is_public(address)


def _key_of(caller: McpCaller, given: SubscribeParams) -> str:
    """Return the id of a subscription: the same for the same client, URL, type and arguments."""
    principal = caller.events.principal
    whole = [principal.zone_id, principal.client_id, given.delivery.url, given.name]
    canonical = orjson.dumps([*whole, given.arguments], option=orjson.OPT_SORT_KEYS)
    return f"sub_{hashlib.sha256(canonical).hexdigest()[:32]}"


def _grant(ttl_ms: int | UnsetType | None) -> _Grant:
    """Return the lifetime that is granted for a suggestion; UNSET: none, None: for ever."""
    if ttl_ms is None:
        return _Grant(None)
    suggested_s = limits.MCP_TTL_S_DEFAULT if ttl_ms is UNSET else ttl_ms / 1_000
    granted_s = min(max(suggested_s, limits.MCP_TTL_S_MIN), limits.MCP_TTL_S_MAX)
    return _Grant(datetime.now(UTC) + timedelta(seconds=granted_s))


def _answer(key: str, grant: _Grant, cursor: Cursor, *, truncated: bool) -> dict[str, Any]:
    return {
        "id": key,
        "refreshBefore": grant.text,
        "cursor": cursor_text(cursor),
        "truncated": truncated,
    }


def _endpoint(given: SubscribeParams, key: str, grant: _Grant) -> dict[str, Any]:
    """Return the body of the request for the endpoint of a subscription."""
    return {
        "url": given.delivery.url,
        "description": f"MCP subscription of {given.name}",
        "secret": given.delivery.secret,
        "format": "mcp",
        "handshake": "mcp",
        "ordered": True,
        "retry_schedule": [*limits.MCP_RETRY_SCHEDULE_S],
        "headers": {_HEADER: key},
        "expires_at": grant.text,
    }


def _refused(reason: str) -> RpcError:
    message = f"The callback endpoint did not agree to deliveries: {reason}."
    return RpcError(CALLBACK_ENDPOINT, message, {"reason": reason})


def _reason_of(outcome: str, status: int | None) -> str:
    """Return the category of a failed attempt or verification."""
    if status is not None and status >= 400:
        return "http_5xx" if status >= 500 else "http_4xx"
    if outcome == "refused":
        return "challenge_failed"
    return _REASONS.get(outcome, "connection_refused" if status is None else "http_4xx")


def _status_of(found: SubscriptionRow) -> dict[str, Any]:
    """Return the delivery status, as it was before the request that asks for it."""
    failing = found.failing_since is not None and found.outcome is not None
    status = {
        "active": found.enabled,
        "lastDeliveryAt": None if found.delivered_at is None else found.delivered_at.isoformat(),
        "lastError": _reason_of(str(found.outcome), found.status) if failing else None,
    }
    since = {} if found.failing_since is None else {"failedSince": found.failing_since.isoformat()}
    return status | since
