"""Emits only events that match some interest (OIF-09); the receipt reports the others.
Plain module.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from eventhub_client.types import HubProblem, Receipt


class Suppresses(Protocol):
    """Decides which events need not be sent."""

    async def matched(self, stream: str, events: Sequence[dict[str, Any]]) -> Sequence[bool]:
        """Return for each event False if it certainly matches no interest."""
        ...


class Emits(Protocol):
    """A hub that accepts events."""

    async def emit(
        self, stream: str, events: Sequence[dict[str, Any]], *, retry_for_s: float
    ) -> Receipt: ...


async def emit_matched(
    hub: Emits,
    suppress: Suppresses,
    stream: str,
    events: dict[str, Any] | Sequence[dict[str, Any]],
    retry_for_s: float,
) -> Receipt:
    """Send the events that may match an interest; nothing if there are none.

    The indexes in the receipt and in a refusal refer to `events`.
    """
    given = [events] if isinstance(events, dict) else list(events)
    matched = await suppress.matched(stream, given)
    sent = [at for at, is_matched in enumerate(matched) if is_matched]
    left_out = tuple(at for at, is_matched in enumerate(matched) if not is_matched)
    if not sent and given:
        return Receipt(stream, (), (), left_out)
    try:
        receipt = await hub.emit(stream, [given[at] for at in sent], retry_for_s=retry_for_s)
    except HubProblem as error:
        if "index" in error.position:
            error.position["index"] = sent[error.position["index"]]
        raise
    duplicates = tuple(one._replace(at=sent[one.at]) for one in receipt.duplicates)
    return receipt._replace(duplicates=duplicates, suppressed=left_out)
