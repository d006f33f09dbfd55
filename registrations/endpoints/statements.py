"""What workers change in endpoints, and how changes are announced. SQL module."""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.eventlog.drafts import Appended
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement, announce_in, notify_of
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, fetch_one

# `callback_columns`: those of `e` (endpoints) and `z` (its zone) that calling an endpoint needs,
# besides its id; `changed_attributes`: of the announcement of a change; `c` is its client
FILLED = {
    "callback_columns": "e.url, e.signature,"
    " (extract(epoch FROM e.changed_at) * 1000000)::bigint AS changed_at_us,"
    " e.client_id, z.name AS zone, e.format, e.handshake, e.batch_events_max,"
    " e.batch_bytes_max, e.retry_schedule, e.rate_limit, e.concurrency, e.timeout_s,"
    " e.allowed_rate, e.kind, e.settings::text AS settings",
    "changed_attributes": "json_build_object('client', c.name, 'endpoint', e.id,"
    " 'ordered', e.ordered, 'order_by', e.order_by, 'format', e.format, 'enabled', e.enabled,"
    " 'reason', e.reason)",
}
SQL = queries.load("registrations/sql/endpoints.sql", filled=FILLED)

Connection = psycopg.Connection[Any]
Format = Literal[
    "native", "cloudevents_structured", "cloudevents_binary", "mcp"
]  # of a callback's body
# How a receiver must agree to callbacks before the first one
Handshake = Literal["none", "cloudevents", "challenge", "check", "mcp"]
VERIFICATIONS = "eventhub_verifications"  # notifications of requests
_SUBSCRIPTION = re.compile(r"sub_[0-9a-f]{32}")  # the keys of registrations of MCP
Signature = Literal["v1", "v1a", "both"]  # of a callback


class _ChangedEndpoint(NamedTuple):
    """A changed endpoint: its zone, the attributes of its announcement, and if the hub disabled it,
    those of the announcement of the cause.
    """

    zone_id: int
    zone: str
    attributes: dict[str, Any]
    cause: dict[str, Any] | None = None


class VerificationResult(NamedTuple):
    """The end of a verification: `verified`, or why not, and what the receiver answered."""

    outcome: str
    status: int | None = None
    detail: str = ""
    allowed_rate: int | None = None  # requests per minute


def request_verification(connection: Connection, endpoint_id: int) -> None:
    """Request that a worker verifies the endpoint, in the caller's transaction. A request before
    that has not ended is replaced.
    """
    connection.execute(SQL["request_verification"], {"id": endpoint_id})
    connection.execute("SELECT pg_notify(%s, '')", (VERIFICATIONS,))


async def end_verification(
    connection: psycopg.AsyncConnection[Any],
    endpoint_id: int,
    number: int,
    result: VerificationResult,
) -> None:
    """Write the result of the request of that number, unless there is a newer one, and enable a
    verified endpoint that waited for it.

    Needs a connection in autocommit mode and opens its own transaction.
    """
    async with connection.transaction():
        key = {"id": endpoint_id, "number": number}
        await connection.execute(SQL["lock_endpoint"], key)  # first, as a change of it does
        ended = {"outcome": result.outcome, "status": result.status, "detail": result.detail}
        if not (await connection.execute(SQL["end_verification"], {**key, **ended})).rowcount:
            return
        if result.outcome != "verified":
            return
        values = {"id": endpoint_id, "allowed_rate": result.allowed_rate}
        row = await fetch_one(connection, _ChangedEndpoint, SQL["verified"], values)
        appended = None if row is None else await _announce_changed(connection, row)
    if appended is not None:
        await notify_of(connection, appended)


def end_subscriptions(
    connection: Connection, keys: Mapping[int, str | None], barrier: int
) -> list[Announcement]:
    """End the endpoints that subscriptions of MCP had until a barrier, in the caller's transaction;
    return what is to be announced. `keys`: of the registrations that ended or were changed at it.
    """
    ids = [id for id, key in keys.items() if key is not None and _SUBSCRIPTION.fullmatch(key)]
    if not ids:
        return []
    values = {"ids": ids, "barrier": barrier, "farewell_s": limits.MCP_FAREWELL_S}
    ended = cursor_of(connection, _ChangedEndpoint).execute(SQL["end_subscriptions"], values)
    changes = [announcement("changed", row.zone_id, row.attributes) for row in ended]
    if changes:
        connection.execute("SELECT pg_notify(%s, '')", (VERIFICATIONS,))
    return changes


async def end_farewell(
    connection: psycopg.AsyncConnection[Any], endpoint_id: int, number: int, *, delivered: bool
) -> None:
    """Let an endpoint end whose receiver was notified that its subscription has ended, else have
    another worker try again later. Needs a connection in autocommit mode.
    """
    key = {"id": endpoint_id, "number": number}
    async with connection.transaction():
        await connection.execute(SQL["lock_endpoint"], key)  # first, as a change of it does
        if delivered:
            await connection.execute(SQL["end_farewell"], key)
        else:
            values = {**key, "pause_s": limits.MCP_FAREWELL_PAUSE_S}
            await connection.execute(SQL["put_off_farewell"], values)


async def disable(connection: psycopg.AsyncConnection[Any], endpoint_id: int, reason: str) -> bool:
    """Disable the endpoint and announce the change (`endpoint.changed`) with its cause
    (`endpoint.disabled`); return False if it is disabled or deleted.

    Needs a connection in autocommit mode and opens its own transaction.
    """
    async with connection.transaction():
        values = {"id": endpoint_id, "reason": reason}
        row = await fetch_one(connection, _ChangedEndpoint, SQL["disable"], values)
        if row is None:
            return False
        appended = await _announce_changed(connection, row)
    await notify_of(connection, appended)
    return True


async def _announce_changed(
    connection: psycopg.AsyncConnection[Any], row: _ChangedEndpoint
) -> Appended:
    """Announce the change and its cause; return the last event, to notify readers of after the
    commit.
    """
    change = announcement("changed", row.zone_id, row.attributes)
    appended = await announce_in(connection, zone=row.zone, announcement=change)
    if row.cause is not None:
        cause = Announcement("endpoint.disabled", row.cause)
        appended = await announce_in(connection, zone=row.zone, announcement=cause)
    return appended


def announcement(change: str, zone_id: int, attributes: dict[str, Any]) -> Announcement:
    """Return an announcement of an endpoint. It has no URL, which may contain secrets."""
    resource = Resource("endpoint", zone_id, str(attributes["endpoint"]))
    return Announcement(f"endpoint.{change}", attributes, resource)
