"""The follower of a session's reader: new events come from the router of the stream, with what they
match, and stored ones in blocks that many readers share. Plain module.
"""

from collections.abc import Callable

from delivery.sessions.event_blocks import EventBlocks, block_start
from delivery.sessions.event_routing import RoutedEvent, SessionRoute
from eventhub.base import limits
from eventhub.base.errors import Gone, SegmentMismatch
from eventhub.eventlog.log import Follower
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import StoredEvent

_PAGE = ReadLimits()
_FIRST_PAGE_EVENTS = limits.SESSION_FIRST_PAGE_EVENTS_MAX
_PAGE_EVENTS = limits.LISTEN_PAGE_EVENTS_MAX  # a multiple of the size of blocks
_PASSED_EVENTS = limits.SESSION_BLOCKS_PASSED_EVENTS_MAX


class RoutedFollower(Follower):
    """A follower whose new events come from a route (`next_routed`), where it serves."""

    __slots__ = ("_reads_all", "_route", "narrows")

    def __init__(
        self, follower: Follower, route: SessionRoute, reads_all: Callable[[], bool]
    ) -> None:
        """Take the place of a follower. `reads_all`: whether the reader needs every event."""
        super().__init__(follower.ring, follower.position, follower._read)
        self.cursor = follower.cursor
        self.narrows = False  # whether the reader evaluates few events of a page
        self._route = route
        self._reads_all = reads_all

    @property
    def serves(self) -> bool:
        """Whether the route has all events after the cursor that are to be evaluated."""
        life = self.ring.life
        return (
            self._life == life
            and self._route.serves(self.cursor.sequence, life)
            and not self._reads_all()
        )

    @property
    def idle(self) -> bool:
        """Whether there is nothing to evaluate."""
        route = self._route
        return self.serves and not route.is_due and not route.has(self.cursor.sequence)

    @property
    def live(self) -> bool:
        """Whether the next event need not be read from the log."""
        return self.at_head or self._has_next_in_blocks

    @property
    def at_head(self) -> bool:
        """Whether the next event comes from the route or the ring."""
        if self.serves or self._route.rest(self.cursor.sequence, self.ring.life):
            return True
        return self._life == self.ring.life and self.ring.holds(self.cursor.sequence)

    @property
    def _has_next_in_blocks(self) -> bool:
        return self.shares_blocks and bool(self.blocks.after(self.cursor, 1))

    def next_routed(self) -> list[RoutedEvent]:
        """Return the next events of the route, which serves; advance with `advance_to`."""
        return self._route.after(self.cursor.sequence)

    def next_in_ring(self, count: int) -> list[StoredEvent] | None:
        """Return the next events to evaluate; None if they must be read with `catch_up`."""
        self._route.read_ring()
        rest = self._route.rest(self.cursor.sequence, self.ring.life)
        if rest and self._life == self.ring.life and not self._reads_all():
            return rest
        if self.shares_blocks and (found := self.blocks.after(self.cursor, _PASSED_EVENTS)):
            return found
        return super().next_in_ring(self._to_block_end() if self.shares_blocks else count)

    async def catch_up(self, page: ReadLimits = _PAGE) -> list[StoredEvent]:
        """Read the next events from the log, as Follower.catch_up."""
        self._route.read_ring()
        if not self.shares_blocks:
            if self.cursor == self.position.cursor:
                page = page._replace(events_max=min(page.events_max, _FIRST_PAGE_EVENTS))
                if self._has_blocks and (found := self.blocks.after(self.cursor, 1)):
                    return found[: page.events_max]  # another session has just passed them
            return await super().catch_up(page)
        if found := self.blocks.after(self.cursor, _PAGE_EVENTS):
            return found
        size = min(page.events_max, limits.SESSION_BLOCKS_READ_EVENTS_MAX)
        found = await self._read_from_block_start(page._replace(events_max=size))
        if self.shares_blocks:  # the ring has had no other life meanwhile
            self.blocks.keep(found)
        return [stored for stored in found if stored.sequence > self.cursor.sequence]

    async def next_page(self, page: ReadLimits = _PAGE) -> list[StoredEvent]:
        """Do the same: a session evaluates each event."""
        return await self.catch_up(page)

    @property
    def blocks(self) -> EventBlocks:
        """The blocks of the stream."""
        return self._route.blocks

    @property
    def shares_blocks(self) -> bool:
        """Whether the reader evaluates few events of a page, and the blocks are of the history that
        it follows.
        """
        return self.narrows and self._has_blocks and not self._reads_all()

    @property
    def _has_blocks(self) -> bool:
        life = self.ring.life
        return self._life == life and self._route.shares(life)

    def _to_block_end(self) -> int:
        """Return how many events a page has that ends with a block."""
        return _PAGE_EVENTS - (self.cursor.sequence + 1) % limits.SESSION_BLOCK_EVENTS

    async def _read_from_block_start(self, page: ReadLimits) -> list[StoredEvent]:
        """Read the next events, with those of their block that are before them, for others that
        read the same; without them, if the block begins in another segment or is not stored.
        """
        start = block_start(self.cursor)
        if start.sequence < self.cursor.sequence:
            try:
                found = await self._read(start, page)
            except (Gone, SegmentMismatch):
                found = []
            if any(stored.cursor == self.cursor for stored in found[:-1]):
                return found
        return await self._read(self.cursor, page)

    def has_more(self) -> bool:
        """Return whether an event is to be evaluated, or to be read from the log."""
        if self.serves:
            return self._route.has(self.cursor.sequence)
        return super().next_in_ring(1) != []
