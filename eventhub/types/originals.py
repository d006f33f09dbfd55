"""The rule that a copy of a stored event keeps the properties that its type declares immutable
(FOX-05). Plain module.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from eventhub.event.envelope import Event
from eventhub.event.errors import ImmutableProperty
from eventhub.event.immutable import require_unchanged
from eventhub.event.inbound import EventIn
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.originals import Copy, Original

MaySee = Callable[[str, Event], bool]  # whether the emitter may see an event of a stream


class PossibleCopy(NamedTuple):
    """A new event whose type has immutable properties, and that may be a copy. `at`: its index in
    the request.
    """

    at: int
    event: EventIn
    draft: Draft
    immutable: Sequence[str]  # dotted paths

    def as_copy(self) -> Copy:
        return Copy(self.draft, self.event.cause)


def may_be_copy(event: EventIn, draft: Draft) -> bool:
    """Return whether an event may name an original: by its cause, or by its id."""
    return bool(event.cause or draft.producer or draft.token)


def require_kept(
    possible: Sequence[PossibleCopy], originals: Iterable[Original], may_see: MaySee
) -> None:
    """Raise ImmutableProperty, with the index, for an event of the same type as its original in
    which an immutable property differs.

    An original that a cause names counts as none if the emitter may not see it: a refusal would
    reveal its values. An original of the same id is the emitter's own.
    """
    for position, stream, payload in originals:
        copy, original = possible[position], decode(payload)
        if (original.domain, original.type) != (copy.event.domain, copy.event.type):
            continue  # an effect, not a copy
        if stream and not may_see(stream, original):
            continue
        _require_kept(original.attributes, copy)


def require_repeats_kept(
    possible: Sequence[PossibleCopy], events: Sequence[EventIn], drafts: Sequence[Draft]
) -> None:
    """Raise ImmutableProperty as well for an event that has the id of an earlier one of its
    request: `events` with their `drafts`.
    """
    first: dict[Any, EventIn] = {}
    for event, draft in zip(events, drafts, strict=True):
        first.setdefault(draft.producer or draft.token, event)
    for copy in possible:
        id = copy.draft.producer or copy.draft.token
        original = first[id]
        if id and (original.domain, original.type) == (copy.event.domain, copy.event.type):
            _require_kept(original.attributes, copy)


def _require_kept(original: Mapping[str, Any], copy: PossibleCopy) -> None:
    try:
        require_unchanged(original, copy.event.attributes, copy.immutable)
    except ImmutableProperty as error:
        error.index = copy.at
        raise
