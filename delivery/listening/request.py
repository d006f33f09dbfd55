"""What a listener requests of one stream, over any transport. Plain module."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from eventhub.base.errors import BodyNotFilterable, InvalidField
from eventhub.eventlog.errors import StreamDeleting
from eventhub.eventlog.read import Start
from eventhub.eventlog.stored import StreamInfo
from registrations.filters.pairs import Pairs, parse_pairs

SnapshotMode = Literal["gap", "always", "never"]
_LANGUAGE = ("language", "filter")


class ListenRequest(NamedTuple):
    """A request to listen: channels and a filter that events must match, or registrations."""

    stream: str
    start: Start = "now"
    mask: int | list[str] | None = None  # 64 bits, names of channels, or all
    pairs: Pairs = Pairs()
    filter: Mapping[str, Any] | None = None  # in another language: its fields (filtering.py)
    registrations: tuple[int, ...] = ()
    state: SnapshotMode = "gap"  # when a keyed stream sends its snapshot: after a gap, first, never
    passes_gaps: bool = False  # report a gap and continue after it; else the reader decides
    history: bool = False  # replay stored events on demand, regardless of the start
    signature: bool = False  # show the signature of each event (FOX-17)
    transport: str = "local"  # for the record alone (audit_trail.py)

    def require_events(self, stream: StreamInfo) -> None:
        """Raise StreamDeleting if the listener would wait for events of a stream that takes none
        any more, because it is to be deleted.
        """
        if stream.deletes_at_us is not None and self.start == "now":
            raise StreamDeleting.of(stream.name, stream.deletes_at_us, field="from")


class EventSelection(NamedTuple):
    """The requested events: pairs, or the fields of a filter in another language."""

    pairs: Pairs
    filter: Mapping[str, Any] | None


def parse_selection(fields: Mapping[str, Any], *, registrations: bool) -> EventSelection:
    """Parse the filter fields of a request: those of pairs, or `language` and `filter`, of which
    only the form is checked here. `registrations`: the request names some.

    Raises InvalidField for both, and what `parse_pairs` raises; each names the field.
    """
    if registrations and fields:
        raise InvalidField(
            "A listener names registrations or a filter, not both; put the filter into a"
            " registration.",
            field="registrations",
        )
    if fields.get("filter") is None and fields.get("language") in (None, "pairs"):
        pairs = {name: value for name, value in fields.items() if name not in _LANGUAGE}
        return EventSelection(parse_pairs(pairs), None)
    for name in ("body", "body_base64"):
        if name in fields:
            raise BodyNotFilterable(field=name)
    return EventSelection(Pairs(), fields)
