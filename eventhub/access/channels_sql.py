"""The channel names of a zone, for the hot doors' own connection. Sql module."""

from collections.abc import Iterable
from typing import Any, LiteralString

# parameter: the zone's id; `channel.defined` in `system` says when it changed
FIND_CHANNELS: LiteralString = "SELECT name, bit FROM channels WHERE zone_id = %s"
DEFAULT_CHANNEL = "default"
_DEFAULT_BIT = 63


def masks_of(rows: Iterable[tuple[Any, ...]]) -> dict[str, int]:
    """Channel name -> mask, with `default`, which every zone has."""
    return {DEFAULT_CHANNEL: 1 << _DEFAULT_BIT} | {name: 1 << bit for name, bit in rows}
