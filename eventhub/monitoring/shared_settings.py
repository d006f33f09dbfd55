"""The settings that all machines of a hub must share. Each member stores digests of them; a hub
that starts beside members with others is refused. SQL module.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.base.env import Env
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("eventhub/monitoring/sql/members.sql")

KEY, ARCHIVE = "EVENTHUB_SECRET_KEY", "EVENTHUB_ARCHIVE_URL"
_WHY = {
    KEY: "logins, tokens and secrets of endpoints would be valid on some machines only",
    ARCHIVE: "archived events could be read on some machines only",
}
_POLL_S = 0.5
_PURPOSE = b"eventhub: settings that machines share"


class OtherSettings(Exception):
    """Another machine runs the hub with other settings; the message says which, and what to do."""


class _RunningMember(NamedTuple):
    """A member without a sign that it has ended. `settings`: its digests, as JSON: Django's
    connections do not decode it.
    """

    id: str
    kind: str
    node: str
    settings: str
    last_seen_us: int


def digests_of(env: Env) -> dict[str, str]:
    """Return digests of the shared settings; "" of one that is not set."""
    return {KEY: _digest(env.secret_key), ARCHIVE: _digest(env.archive_url)}


def require_shared(connection: psycopg.Connection[Any], env: Env) -> None:
    """Check that all members that run have this process's settings. One with others is given the
    time for a heartbeat: it may have been killed. Former secret keys are no difference. Raises
    OtherSettings, psycopg.Error.
    """
    accepted = {
        KEY: {_digest(key) for key in (env.secret_key, *env.secret_key_fallbacks)},
        ARCHIVE: {_digest(env.archive_url)},
    }
    others = _others(connection, accepted)
    until_s = time.monotonic() + limits.MEMBER_HEARTBEAT_S * 2
    while others and time.monotonic() < until_s:
        time.sleep(_POLL_S)
        now = _others(connection, accepted)
        for id in others.keys() & now.keys():
            if now[id].last_seen_us > others[id].last_seen_us:
                raise OtherSettings(_message(now[id], accepted))
        others = {id: others[id] for id in others.keys() & now.keys()}


def _others(
    connection: psycopg.Connection[Any], accepted: Mapping[str, set[str]]
) -> dict[str, _RunningMember]:
    """Return the members with other settings, by id."""
    rows = cursor_of(connection, _RunningMember)
    running = rows.execute(SQL["running"], {"lost_s": limits.MEMBER_LOST_S}).fetchall()
    return {one.id: one for one in running if _different(one, accepted)}


def _different(member: _RunningMember, accepted: Mapping[str, set[str]]) -> list[str]:
    """Return the settings that differ; one that a process does not have is no difference."""
    found: dict[str, str] = json.loads(member.settings)
    return [
        name
        for name, digests in accepted.items()
        if found.get(name) and digests != {""} and found[name] not in digests
    ]


def _message(member: _RunningMember, accepted: Mapping[str, set[str]]) -> str:
    name = _different(member, accepted)[0]
    return (
        f"A {member.kind} process of this hub on {member.node} has another {name}: {_WHY[name]}."
        f" Set {name} to the value used there, and start again (docs/operations.md, On several"
        " machines)."
    )


def _digest(value: str) -> str:
    if not value:
        return ""
    return hmac.new(value.encode(), _PURPOSE, hashlib.sha256).hexdigest()[:16]
