"""Compiles the filter of a listen request: looks up channels by name, and reads a filter in any
language as that of a registration is read. Plain module.

A large filter takes long to read, so one thread reads large filters one after another, and no
events wait. Each client has one filter in that queue: many filters of one client do not delay the
others.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakValueDictionary

from delivery.listening.protocol import ListenerFilter
from delivery.listening.request import ListenRequest
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import UnknownChannel
from eventhub.event.envelope import ALL_MASK
from registrations.filter_source import parse_filter
from registrations.filters.ast import Node
from registrations.filters.evaluation_cost import weight
from registrations.filters.normal import always

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="filters")
_locks: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, int], asyncio.Lock] = (
    WeakValueDictionary()
)  # by client, while one of its filters is read


async def compile_filter(
    authorizer: Authorizer, principal: Principal, request: ListenRequest
) -> ListenerFilter:
    """Return the filter of a client's request.

    Raises UnknownChannel, and with its field what `parse_filter` raises for a registration.
    """
    mask = request.mask
    if isinstance(mask, list):
        try:
            mask = await authorizer.mask(principal.zone_id, mask)
        except UnknownChannel as error:
            error.field = "mask"
            raise
    tree = None
    if request.filter is not None:
        tree = await _tree_of(principal.client_id, request.filter)
    compiled = ListenerFilter(
        mask=ALL_MASK if mask is None else mask,
        pairs=None if request.pairs.everything else request.pairs,
        zone=principal.zone if request.stream == "system" else None,
        tree=tree,
        cost=cost_of(tree),
    )
    return compiled.for_principal(principal)


def cost_of(tree: Node | None) -> int:
    """Return the largest cost of an evaluation, in units of evaluation_cost.py."""
    return 0 if tree is None else weight(tree)


async def _tree_of(client_id: int, fields: Mapping[str, Any]) -> Node | None:
    """Return the tree of a client's filter; None if every event matches."""
    source = fields.get("filter")
    if isinstance(source, str) and len(source) <= limits.FILTER_CHARS_INLINE:
        return _read(fields)
    loop = asyncio.get_running_loop()
    async with _locks.setdefault((loop, client_id), asyncio.Lock()):
        return await loop.run_in_executor(_thread, _read, fields)


def _read(fields: Mapping[str, Any]) -> Node | None:
    parsed, form = parse_filter(dict(fields)).read()
    return None if always(form) else parsed.node
