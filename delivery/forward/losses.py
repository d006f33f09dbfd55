"""Announces in `system` what endpoints did not receive: deliveries that were dead-lettered
(`delivery.dead_lettered`), and those dropped because the backlog passed its bounds
(`delivery.dropped`). SQL module.

Rows of `endpoint_losses` are written together with the deliveries, so nothing is missed. An
endpoint's first loss is announced within seconds, later ones together, so that a mass failure
produces few events.
"""

from itertools import groupby
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.base.logs import get_logger
from eventhub.event.json_codec import time_text
from eventhub.eventlog.retention.drop import append_in_turn
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all

log = get_logger(__name__)
SQL = queries.load("delivery/sql/backlog.sql")


class Loss(NamedTuple):
    """The deliveries that one endpoint did not receive since the last announcement."""

    kind: str  # dead_lettered, dropped
    zone: str
    client: str
    endpoint: int
    deliveries: int
    why: str  # the bound, if they were dropped; else the outcome of the last attempt
    since_us: int
    first_stream: str
    first_segment: str
    first_sequence: int
    last_stream: str
    last_segment: str
    last_sequence: int


async def announce_losses(connection: Connection) -> int:
    """Announce the losses that are due, for a bounded number of endpoints; return how many. Raise
    what psycopg raises, and what refuses an event.
    """
    bounds = {"interval_s": limits.LOSSES_INTERVAL_S, "losses_max": limits.LOSSES_PER_CHECK_MAX}
    async with connection.transaction():
        losses = await fetch_all(connection, Loss, SQL["losses_due"], bounds)
        drafts = [
            draft
            for zone, of_zone in groupby(losses, key=lambda loss: loss.zone)
            for draft in drafts_of(zone, [_announcement(loss) for loss in of_zone])
        ]
        if drafts:
            await append_in_turn(connection, drafts)
    await connection.execute(SQL["forget_losses"], bounds)
    for loss in losses:
        log.warning("deliveries_lost", **loss._asdict())
    return len(losses)


def _announcement(loss: Loss) -> Announcement:
    attributes: dict[str, Any] = {
        "level": "warning",
        "client": loss.client,
        "endpoint": loss.endpoint,
        "deliveries": loss.deliveries,
        "since": time_text(loss.since_us),
        "first": _cursor(loss.first_stream, loss.first_segment, loss.first_sequence),
        "last": _cursor(loss.last_stream, loss.last_segment, loss.last_sequence),
    }
    if loss.why:
        attributes["bound" if loss.kind == "dropped" else "outcome"] = loss.why
    return Announcement(f"delivery.{loss.kind}", attributes)


def _cursor(stream: str, segment: str, sequence: int) -> dict[str, Any]:
    return {"stream": stream, "segment": segment, "sequence": sequence}
