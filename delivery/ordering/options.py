"""The order of a session as its settings state it: its name, its delays, and the types or suppliers
that come first. Plain module.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from eventhub.base import limits

OrderName = Literal[
    "none", "fifo", "priority", "validity", "supplier", "type", "timestamp", "causal"
]


class OrderSettings(NamedTuple):
    """An order (RDY-49, FOX-21) and its parameters; those that it does not use are ignored."""

    name: OrderName = "fifo"
    # worst clock skew plus worst delay from a supplier to the hub (RDY-51)
    occur_delay_us: int = limits.ORDER_OCCUR_DELAY_MS_DEFAULT * 1_000
    hold_us: int = 0  # an event that waits for another one is held at most so long after its append
    types: tuple[tuple[str, str], ...] = ()  # (domain, type), as in the order; domain "" is any
    suppliers: tuple[str, ...] = ()  # clients, as in the order


_HOLD_MS = {
    "causal": limits.ORDER_HOLD_MS_DEFAULT,
    "timestamp": limits.ORDER_HOLD_MS_MAX,  # an event whose clock is ahead of the hub's
}


def order_settings(name: OrderName, options: Mapping[str, Any]) -> OrderSettings:
    """Return the settings of an order from its options as they are stored: `occur_delay_ms`,
    `hold_ms`, `types` (names, or objects with `domain` and `type`) and `suppliers`.
    """
    delay_ms = options.get("occur_delay_ms", limits.ORDER_OCCUR_DELAY_MS_DEFAULT)
    hold_ms = options.get("hold_ms", _HOLD_MS.get(name, 0))
    return OrderSettings(
        name=name,
        occur_delay_us=delay_ms * 1_000,
        hold_us=hold_ms * 1_000,
        types=tuple(map(_declared_type, options.get("types") or ())),
        suppliers=tuple(options.get("suppliers") or ()),
    )


def _declared_type(entry: str | Mapping[str, str]) -> tuple[str, str]:
    if isinstance(entry, str):
        return ("", entry)
    return (entry.get("domain", ""), entry["type"])


def rank_of_type(domain: str, type: str, types: Sequence[tuple[str, str]]) -> int:
    """Return the place of the first entry that names the type: itself, `prefix.*` or `*`. A type
    that no entry names comes after all.
    """
    for rank, (domain_named, named) in enumerate(types):
        if domain_named in ("", "*", domain) and _names(named, type):
            return rank
    return len(types)


def _names(named: str, type: str) -> bool:
    if named.endswith(".*"):
        return type.startswith(named[:-1])
    return named in ("*", type)
