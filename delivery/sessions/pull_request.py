"""The body of a pull, and what it acknowledges and extends. Plain module."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from eventhub.base import limits
from eventhub.base.errors import MissingField
from eventhub.event.inbound import NO_NUL, refuse_json

_StreamName = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX, pattern=NO_NUL)]
_Sequence = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Sequences = Annotated[list[_Sequence], Meta(max_length=limits.SESSION_WINDOW_MAX)]


class AcknowledgedIn(Struct, forbid_unknown_fields=True):
    """Events of a stream that were processed: all that were handed out up to `sequence`, and those
    of `sequences`.
    """

    stream: _StreamName
    sequence: _Sequence | None = None
    sequences: _Sequences = []


class VisibilityIn(Struct, forbid_unknown_fields=True):
    """Events of a stream that are handed out again after so many seconds from now, unless they are
    acknowledged by then; 0: at once.
    """

    stream: _StreamName
    sequences: _Sequences
    visibility_s: Annotated[float, Meta(ge=0, le=limits.PULL_VISIBILITY_S_MAX)]


class PullIn(Struct, forbid_unknown_fields=True, rename={"events_max": "max"}):
    """A pull. With `max` 0 it only acknowledges and changes visibilities."""

    events_max: Annotated[int, Meta(ge=0, le=limits.PULL_EVENTS_MAX)] = limits.PULL_EVENTS_DEFAULT
    wait_s: Annotated[float, Meta(ge=0, le=limits.POLL_TIMEOUT_S_MAX)] = 0.0
    visibility_s: Annotated[
        float, Meta(ge=limits.PULL_VISIBILITY_S_MIN, le=limits.PULL_VISIBILITY_S_MAX)
    ] = limits.PULL_VISIBILITY_S_DEFAULT
    acknowledgements: Annotated[
        list[AcknowledgedIn], Meta(max_length=limits.SESSION_STREAMS_MAX)
    ] = []
    visibility: Annotated[list[VisibilityIn], Meta(max_length=limits.SESSION_STREAMS_MAX)] = []

    @property
    def changes(self) -> bool:
        """Whether it acknowledges or extends something."""
        return bool(self.acknowledgements or self.visibility)

    @property
    def places(self) -> dict[str, str]:
        """The first place of each stream that it names."""
        found: dict[str, str] = {}
        for at, acknowledged in enumerate(self.acknowledgements):
            found.setdefault(acknowledged.stream, f"acknowledgements.{at}")
        for at, extended in enumerate(self.visibility):
            found.setdefault(extended.stream, f"visibility.{at}")
        return found


_decoder = msgspec.json.Decoder(PullIn)


def parse_pull(body: bytes) -> PullIn:
    """Parse the body of a pull; an empty one has the defaults. Raises subclasses of BadRequest with
    the field.
    """
    try:
        found = _decoder.decode(body or b"{}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        refuse_json(error)
    for place, one in enumerate(found.acknowledgements):
        if one.sequence is None and not one.sequences:
            raise MissingField(field=f"acknowledgements.{place}.sequence")
    return found
