"""Emitting without what nobody wants (OIF-09): who decides is handed in, and reported in the
receipt. Plain module.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from eventhub_client.types import HubProblem, Receipt


class Suppresses(Protocol):
    """Says which events need not be sent."""

    async def wanted(self, stream: str, events: Sequence[dict[str, Any]]) -> Sequence[bool]:
        """For each event False if surely nobody wants it."""
        ...


class Emits(Protocol):
    """A hub that takes events."""

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
    """Send the events that somebody may want; nothing at all if there are none.

    The indexes in the receipt, and in a refusal, are those of the events that were given.
    """
    given = [events] if isinstance(events, dict) else list(events)
    verdicts = await suppress.wanted(stream, given)
    sent = [at for at, wanted in enumerate(verdicts) if wanted]
    left_out = tuple(at for at, wanted in enumerate(verdicts) if not wanted)
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
