"""Lists deliveries that ended without success, grouped by endpoint and cause. Django module."""

from datetime import datetime
from typing import Any, NamedTuple

from delivery import selectors
from delivery.recovery.services import SQL
from delivery.selectors import KEY_FIELDS
from eventhub.access.principal import Actor
from eventhub.api.announcements import raw_connection
from eventhub.api.pagination import Page, PreparedPage, values_of
from eventhub.base import limits
from eventhub.postgresql.rows import cursor_of
from registrations.scope import require_some_listen, scope

_END = (1 << 63) - 1, (1 << 31) - 1, (1 << 63) - 1, (1 << 63) - 1  # in the order of KEY_FIELDS


class _GroupRow(NamedTuple):
    """A group, and the position of the next page; all but that is null if there is no group."""

    endpoint_id: int | None
    client: str | None
    last_outcome: str | None
    last_status: int | None
    deliveries: int | None
    first_at: datetime | None
    last_at: datetime | None
    samples: list[list[int]] | None
    next: list[int] | None


class DeadLetterGroup(NamedTuple):
    """Deliveries to one endpoint that failed for one cause. `samples`: ids of the newest ones."""

    endpoint: int
    client: str
    outcome: str | None
    status: int | None
    deliveries: int
    first_at: datetime
    last_at: datetime
    samples: list[str]


def list_groups(*, actor: Actor, filters: dict[str, Any], page: Page) -> PreparedPage:
    """Return groups of the actor's client, of the client that a manager names, or of the zone, of
    the streams that the actor may listen to. The largest group comes first.

    At most `DEAD_LETTERS_EXAMINED_MAX` deliveries are counted, the newest first; a page with a
    `next` covers only these, and the next page goes on with older ones.
    """
    require_some_listen(actor=actor)
    stream = filters["stream"]
    values: dict[str, Any] = {
        "zone_id": actor.zone_id,
        "state": filters["state"] or "dead_lettered",
        "client": scope(actor=actor, name=filters["client"]),
        "endpoint": filters["endpoint"],
        "stream_ids": selectors.listened_ids(
            actor=actor, names=stream and [stream], field="stream"
        ),
        "rows_max": limits.DEAD_LETTERS_EXAMINED_MAX,
        "groups_max": page.limit,
        "samples": limits.DEAD_LETTER_SAMPLES,
    }
    after = values_of(page.after, KEY_FIELDS) if page.after else _END
    values |= dict(
        zip(("endpoint_id", "partition_id", "segment_id", "sequence"), after, strict=True)
    )
    if values["stream_ids"] is not None:
        values["stream_ids"] = list(values["stream_ids"])
    rows = cursor_of(raw_connection(), _GroupRow).execute(SQL["dead_letter_groups"], values)
    found = rows.fetchall()
    last = found[0].next
    groups = [_group(row) for row in found if row.endpoint_id is not None]
    return PreparedPage(groups, None if last is None else _text(last))


def _group(row: _GroupRow) -> DeadLetterGroup:
    return DeadLetterGroup._make([*row[:7], [*map(_text, row.samples or [])]])


def _text(key: list[int]) -> str:
    return ".".join(map(str, key))
