"""Parses requests for dry runs: a draft, and the events of a stream to evaluate. Plain module."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, Required, TypedDict

from msgspec import Meta

from eventhub.access.authorizer import Authorizer
from eventhub.access.names import valid_name
from eventhub.base import limits
from eventhub.base.errors import (
    InvalidCursor,
    InvalidField,
    InvalidMask,
    MissingField,
    UnknownChannel,
)
from eventhub.event.envelope import ALL_MASK
from eventhub.event.inbound import parse_mask
from eventhub.event.json_types import Int64
from eventhub.eventlog.backward_cursors import before, stream_ends
from eventhub.eventlog.log import Log
from eventhub.eventlog.read import AtTime, Start, resolve
from eventhub.eventlog.start_positions import parse_start
from eventhub.eventlog.stored import Cursor, StreamInfo
from eventhub.postgresql.connections import reading
from registrations.explain.drafts import FilterDraft, parse_draft, require_known
from registrations.filter_source import FilterJson

Mask = int | list[str] | None  # 64 bits, names of channels, or None: all
_FROM = "`oldest`, `boot`, a cursor `<segment>:<sequence>`, or a time."


_From = TypedDict("_From", {"from": Annotated[str, Meta(description=_FROM)]}, total=False)


class DryRunRequest(FilterJson, _From, total=False):
    """A draft of a filter, and the events to evaluate."""

    stream: Required[str]
    last: Annotated[
        int,
        Meta(
            ge=1,
            le=limits.DRY_RUN_EVENTS_MAX,
            description="The number of latest events, unless `from` is given.",
            extra_json_schema={"default": limits.DRY_RUN_EVENTS_DEFAULT},
        ),
    ]
    to: Annotated[str, Meta(description="A cursor or a time; by default the head.")]
    samples: Annotated[int, Meta(ge=0, le=limits.DRY_RUN_SAMPLES_MAX)]
    mask: str | Int64
    channels: list[str]


_FIELDS = frozenset(DryRunRequest.__annotations__)


class DryRunOptions(NamedTuple):
    """The options of a dry run. Without `start`, it evaluates the `last` events; else those after
    `start`, up to `end` (None: the head).
    """

    stream: str
    draft: FilterDraft
    mask: Mask
    last: int
    start: Start | None
    end: Start | None
    samples: int


class EventRange(NamedTuple):
    """The events after a cursor, up to a sequence."""

    after: Cursor
    last: int


def parse_dry_run(body: Mapping[str, Any]) -> DryRunOptions:
    """Parse the body. Raises, with the field, errors of filters and start positions, InvalidField,
    MissingField, UnknownField.
    """
    require_known(body, _FIELDS)
    draft = parse_draft(body)
    start, end = _start(body, "from"), _start(body, "to")
    if start is None and end is not None:
        raise MissingField("Give `from`, the start of the range.", field="from")
    if start is not None and body.get("last") is not None:
        raise InvalidField("Give either `last`, or a range by `from` and `to`.", field="last")
    last = _count(body, "last", limits.DRY_RUN_EVENTS_DEFAULT, limits.DRY_RUN_EVENTS_MAX)
    samples = _count(body, "samples", limits.DRY_RUN_SAMPLES_DEFAULT, limits.DRY_RUN_SAMPLES_MAX)
    return DryRunOptions(stream_of(body), draft, mask_of(body), last, start, end, samples)


def stream_of(body: Mapping[str, Any]) -> str:
    """Return the `stream` of a body. Raises MissingField, InvalidField, InvalidName."""
    stream = body.get("stream")
    if stream is None:
        raise MissingField(field="stream")
    if not isinstance(stream, str):
        raise InvalidField("The name of a stream is a string.", field="stream")
    return valid_name(stream, field="stream")


def mask_of(body: Mapping[str, Any]) -> Mask:
    """Return `mask` as bits, or `channels` by name; None: all. Raises InvalidMask."""
    mask, channels = body.get("mask"), body.get("channels")
    if channels is None:
        if mask is not None and (isinstance(mask, bool) or not isinstance(mask, int | str)):
            raise InvalidMask(field="mask")
        return None if mask is None else parse_mask(mask)
    if mask is not None:
        raise InvalidMask("Give `channels` or `mask`, not both.", field="mask")
    names = isinstance(channels, list) and all(isinstance(name, str) for name in channels)
    if not names or not 0 < len(channels) <= limits.QUERY_NAMES_MAX:
        raise InvalidMask("`channels` is a list of names.", field="channels")
    return list(channels)


async def bits_of(authorizer: Authorizer, zone_id: int, mask: Mask) -> int:
    """Return the bits of a mask in a zone. Raises UnknownChannel."""
    if not isinstance(mask, list):
        return ALL_MASK if mask is None else mask
    try:
        return await authorizer.mask(zone_id, mask)
    except UnknownChannel as error:
        error.field = "channels"
        raise


async def range_of(
    log: Log, stream: StreamInfo, options: DryRunOptions
) -> tuple[EventRange, Cursor]:
    """Return the range of the run, and the last event of the stream now. Raises SegmentMismatch,
    Gone, DatabaseUnavailable, TransientUnavailable.
    """
    head = (await stream_ends(log, stream)).head
    if options.start is None:
        after = await before(log, stream, head, options.last) or head
        return EventRange(after, head.sequence), head
    after = await _cursor(log, stream, options.start)
    if options.end is None:
        return EventRange(after, head.sequence), head
    return EventRange(after, (await _cursor(log, stream, options.end)).sequence), head


async def _cursor(log: Log, stream: StreamInfo, start: Start) -> Cursor:
    if stream.durability == "transient":
        return (await log.transient.resolve(stream.id, start)).cursor
    async with reading(log.pool) as connection:
        return (await resolve(connection, stream.id, start)).cursor


def _start(body: Mapping[str, Any], name: str) -> Start | None:
    """Parse `from` or `to`. `to` is a cursor or a time; `from` may also be a keyword."""
    text = body.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise InvalidField("A position is a string: a cursor or a time.", field=name)
    try:
        found = parse_start(text)
    except InvalidCursor as error:
        error.field = name
        raise
    if name == "to" and not isinstance(found, Cursor | AtTime):
        raise InvalidField("A range ends at a cursor or a time.", field=name)
    return found


def _count(body: Mapping[str, Any], name: str, default: int, most: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    least = 0 if name == "samples" else 1
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidField(f"`{name}` is a number from {least} to {most}.", field=name)
    return value
