"""What a reader asks of one stream, whatever door it came through. Plain module."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from eventhub.base.errors import BodyNotFilterable, InvalidField
from eventhub.eventlog.read import Start
from registrations.filters.pairs import Pairs, parse_pairs

StateWish = Literal["gap", "always", "never"]
_LANGUAGE = ("language", "filter")


class Wish(NamedTuple):
    """A listen as asked for: channels and pairs (or a filter) must be met; or registrations."""

    stream: str
    start: Start = "now"
    mask: int | list[str] | None = None  # 64 bits, names of channels, or all
    pairs: Pairs = Pairs()
    filter: Mapping[str, Any] | None = None  # in another language: its fields (filtering.py)
    registrations: tuple[int, ...] = ()
    state: StateWish = "gap"  # of a keyed stream: the snapshot after a gap, at the beginning, never
    passes_gaps: bool = False  # go on behind a gap that was told; else the reader decides
    history: bool = False  # what is stored is replayed on demand, wherever it begins
    transport: str = "local"  # for the record alone (recorded.py)


class Chosen(NamedTuple):
    """Which events: pairs, or the fields of a filter in another language."""

    pairs: Pairs
    filter: Mapping[str, Any] | None


def chosen(fields: Mapping[str, Any], *, registrations: bool) -> Chosen:
    """From the fields of a filter that are given: those of pairs, or `language` and `filter`, of
    which only the form is looked at here. `registrations`: the listen names some.

    Raises with the field InvalidField for both, and what `parse_pairs` raises.
    """
    if registrations and fields:
        raise InvalidField(
            "A listen names registrations or a filter, not both; put it into a registration.",
            field="registrations",
        )
    if fields.get("filter") is None and fields.get("language") in (None, "pairs"):
        pairs = {name: value for name, value in fields.items() if name not in _LANGUAGE}
        return Chosen(parse_pairs(pairs), None)
    for name in ("body", "body_base64"):
        if name in fields:
            raise BodyNotFilterable(field=name)
    return Chosen(Pairs(), fields)
