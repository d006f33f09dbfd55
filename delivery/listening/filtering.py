"""What a wish lets through: channels by name looked up, a filter in any language read as that of a
registration is. Plain module.

A large filter takes long to read, so it is read aside, one after the other: nobody's events wait.
Of each client one at a time is in the queue: many of one keep nobody else's waiting.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakValueDictionary

from delivery.listening.protocol import Filter
from delivery.listening.request import Wish
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import UnknownChannel
from eventhub.event.envelope import ALL_MASK
from registrations.filter_source import parse_filter
from registrations.filters.ast import Node
from registrations.filters.evaluation_cost import weight
from registrations.filters.normal import always

_aside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="filters")
_turns: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, int], asyncio.Lock] = (
    WeakValueDictionary()
)  # by client, while some of its filters are read


async def filter_of(authorizer: Authorizer, principal: Principal, wish: Wish) -> Filter:
    """What a caller's wish lets through.

    Raises UnknownChannel, and with its field what `parse_filter` raises for a registration.
    """
    mask = wish.mask
    if isinstance(mask, list):
        try:
            mask = await authorizer.mask(principal.zone_id, mask)
        except UnknownChannel as error:
            error.field = "mask"
            raise
    tree = None if wish.filter is None else await _tree_of(principal.client_id, wish.filter)
    wanted = Filter(
        mask=ALL_MASK if mask is None else mask,
        pairs=None if wish.pairs.everything else wish.pairs,
        zone=principal.zone if wish.stream == "system" else None,
        tree=tree,
        cost=cost_of(tree),
    )
    return wanted.seen_by(principal)


def cost_of(tree: Node | None) -> int:
    """What an event may cost, in units of weight.py."""
    return 0 if tree is None else weight(tree)


async def _tree_of(client_id: int, fields: Mapping[str, Any]) -> Node | None:
    """The tree of a client's filter; None if it lets everything through."""
    source = fields.get("filter")
    if isinstance(source, str) and len(source) <= limits.FILTER_CHARS_INLINE:
        return _read(fields)
    loop = asyncio.get_running_loop()
    async with _turns.setdefault((loop, client_id), asyncio.Lock()):
        return await loop.run_in_executor(_aside, _read, fields)


def _read(fields: Mapping[str, Any]) -> Node | None:
    parsed, form = parse_filter(dict(fields)).read()
    return None if always(form) else parsed.node
