"""The keys by which endpoints order their deliveries, kept current by following `system`. An
endpoint that is ordered by the whole stream has none. SQL module.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from psycopg_pool import AsyncConnectionPool

from delivery.forward.leases import SQL
from eventhub.event.envelope import Event
from eventhub.postgresql.connections import Connection, reading
from eventhub.postgresql.rows import fetch_all
from registrations.endpoints.order_key import lane_number, order_path
from registrations.feed import Feed
from registrations.filters.ast import Path


class _OrderKey(NamedTuple):
    """An endpoint that is ordered by key."""

    id: int
    order_by: str


class OrderKeys:
    """The keys of one process. Call `refresh` after the feed is confirmed and before `lanes`."""

    def __init__(self, feed: Feed) -> None:
        self._paths: dict[int, Path] = {}  # by endpoint
        self._all_changed = True
        self._changed: set[int] = set()
        self._refreshing = asyncio.Lock()
        feed.endpoint_listeners.add(self._on_change)

    async def refresh(self, pool: AsyncConnectionPool[Connection]) -> None:
        """Read what changed since the last call. Raises DatabaseUnavailable."""
        async with self._refreshing:  # also by a caller that finds nothing: others may be reading
            if not self._all_changed and not self._changed:
                return
            changed, everything = self._changed, self._all_changed
            self._changed, self._all_changed = set(), False
            try:
                async with reading(pool) as connection:
                    values = {"all": everything, "ids": [*changed]}
                    found = await fetch_all(connection, _OrderKey, SQL["keys"], values)
            except BaseException:
                self._changed |= changed
                self._all_changed |= everything
                raise
            paths = {row.id: order_path(row.order_by) for row in found}
            if everything:
                self._paths = paths
            else:
                for endpoint_id in changed - paths.keys():
                    self._paths.pop(endpoint_id, None)
                self._paths.update(paths)

    def lanes(self, stream_id: int, event: Event, endpoints: Mapping[int, Any]) -> dict[int, int]:
        """Return the lane of the event for each of the endpoints that is ordered by key."""
        if not self._paths:
            return {}
        return {
            endpoint_id: lane_number(stream_id, event, self._paths[endpoint_id])
            for endpoint_id in self._paths.keys() & endpoints.keys()
        }

    def _on_change(self, endpoint_id: int | None) -> None:
        if endpoint_id is None:
            self._all_changed = True
        else:
            self._changed.add(endpoint_id)
