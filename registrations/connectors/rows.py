"""What a connector reads, in the form that maps read, and the event of a row. Plain module."""

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.base.errors import EventHubError, EventTooLarge
from eventhub.event.inbound import JSON, EventIn, from_objects
from registrations.connectors.errors import ConnectorFault
from registrations.sources.mapping import SourceMap, apply_map
from registrations.sources.received import ReceivedRequest


class InputRow(NamedTuple):
    """A row or message. `name`: identifies it to people; `document`: what maps read, JSON; None: it
    is too large; `position`: the connector's after it, in the form of its kind.
    """

    name: str
    document: bytes | None
    body: bytes | None
    content_type: str
    position: str
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody changes it

    @property
    def request(self) -> ReceivedRequest:
        """The row as the request that maps of sources read."""
        return ReceivedRequest({**self.headers, "content-type": JSON}, "", self.document or b"")


class LostRows(NamedTuple):
    """Rows that were removed before they were read: their place, and the first and last number."""

    place: str
    first: int
    last: int


class InputBatch(NamedTuple):
    """Rows in their order. `position`: without rows, one that the connector has reached all the
    same; "": it is where it was. `lost`: rows before that position which cannot be read.
    """

    rows: list[InputRow]
    position: str = ""
    lost: Sequence[LostRows] = ()


class RowMap(NamedTuple):
    """What decides on the event of a row, besides the row. `node`: the connector's name, so that
    equal ids of two connectors of a client are two events.
    """

    node: str
    own: SourceMap
    usual: SourceMap


def fields_of(mapped: RowMap, row: InputRow) -> dict[str, Any]:
    """Return the event of a row in the form of the emit route. Raises UnmappedDelivery,
    MalformedJson, EventTooLarge.
    """
    if row.document is None:
        size_max = limits.CONNECTOR_ROW_BYTES_MAX
        message = f"The row has more than {size_max:,} bytes as JSON."
        raise EventTooLarge(message, bytes_max=size_max)
    fields = apply_map(mapped.own, mapped.usual, row.request)
    fields["node"] = mapped.node
    if row.body is not None:
        fields["content_type"] = row.content_type
        fields["body_base64"] = base64.b64encode(row.body).decode()
    return fields


def event_of_row(mapped: RowMap, row: InputRow) -> EventIn:
    """Return the event of a row. Raises what `fields_of` raises, and subclasses of BadRequest if
    the map makes no event.
    """
    try:
        [event] = from_objects([fields_of(mapped, row)])
    except EventHubError as error:
        error.index = None
        raise
    return event


def loss(lost: Sequence[LostRows]) -> ConnectorFault:
    """Return the fault of a connector that stops at rows which are gone."""
    first, last = lost[0].first, lost[0].last
    text = f"Rows were removed before they were read: {first:,} to {last:,} of {lost[0].place}"
    if len(lost) > 1:
        text += f", and of {len(lost) - 1} more"
    text += ". Set `on_refusal` to `set_aside` to go on after them."
    return ConnectorFault("rows_lost", text, is_lasting=True)


def refusal(row: InputRow, error: EventHubError) -> ConnectorFault:
    """Return the fault of a connector that stops at a row."""
    where = f" (`{error.field}`)" if error.field else ""
    text = f"The row {row.name} is no event{where}: {error.message}"
    return ConnectorFault(error.code, text, is_lasting=True)
