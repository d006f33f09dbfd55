"""A group whose engines are restored: applies the changes of its patterns, feeds the engines, and
writes what they return. SQL module.

Exactness: after each read of events it awaits `feed.confirm()`, so it knows every change whose
barrier an event of them is after. It consumes each stream up to a barrier, applies its changes, and
goes on: so a version gets the events after its first barrier, up to its last one.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from psycopg_pool import AsyncConnectionPool

from delivery.forward.leases import LeaseLost, Leases
from delivery.forward.zone import ZoneCaches
from delivery.patterns.changes import BarrierChange
from delivery.patterns.checkpoints import Checkpoint, NewSnapshot, write
from delivery.patterns.group_reader import GroupReader, StreamGap
from delivery.patterns.group_tables import (
    GroupLease,
    StoredPatternVersion,
    group_name,
    versions_of,
)
from delivery.patterns.memory import GroupMemory
from delivery.patterns.output_space import OutputSpace
from delivery.patterns.outputs import LostOutput, OutputEvent, effects_of
from delivery.patterns.restoring import GroupEngine, StoredGroup, position_of, recent_events
from delivery.patterns.totals import GroupTotals
from delivery.patterns.turns import GroupTurns
from delivery.patterns.unwritten import EventOutputs, Unwritten
from eventhub.access.rate_limits import seconds_to_wait
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.event.audience import is_visible_in_zone, may_see
from eventhub.event.envelope import Event
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import Cursor, StoredEvent
from eventhub.eventlog.system import SYSTEM_STREAM_ID, Announcement
from eventhub.postgresql.connections import Connection, reading
from registrations.agents.run import AgentOutput
from registrations.feed import Feed
from registrations.patterns.pattern_engine import EventPosition


class PatternContext(NamedTuple):
    """The objects that the pattern groups of one forwarder share."""

    log: Log
    pool: AsyncConnectionPool[Connection]  # write.writing_pool
    leases: Leases[GroupLease]
    feed: Feed
    zones: ZoneCaches
    clock: Clock
    turns: GroupTurns
    memory: GroupMemory
    space: OutputSpace


class RunningGroup:
    """A group whose engines are restored, with its unwritten outputs."""

    def __init__(
        self,
        context: PatternContext,
        lease: GroupLease,
        stored: StoredGroup,
        found: GroupEngine,
        reader: GroupReader,
    ) -> None:
        self.reader = reader
        self._context = context
        self._lease = lease
        self._owner = stored.owner
        self._zone = found.zone
        self._zone_name = (stored.group.zone_id, stored.group.zone)
        self._client_id = stored.group.client_id
        self._found = found
        self._totals = GroupTotals(stored.owner, stored.totals)
        self._order = stored.group.position
        self._cursors = stored.group.cursors
        now_s = context.clock.monotonic_s()
        self._unwritten = Unwritten(self._order, now_s)
        self._unwritten.needs_snapshot = stored.snapshot is None
        # so forwarders that are killed every few seconds write one, too
        self._snapshot_at_s = stored.loading_since_s + limits.PATTERN_SNAPSHOT_INTERVAL_S
        self._since_snapshot = sum(row.last - row.first + 1 for row in stored.journal)  # events
        self._evaluated = 0  # filters, as reported last
        self._last: tuple[EventPosition, Event] | None = None  # that it was fed

    @property
    def has_changes(self) -> bool:
        """Whether some change is not applied yet."""
        return self._found.changes.next is not None

    @property
    def filters(self) -> int:
        """The number of distinct filters of its patterns."""
        return len(self._found.engine.leaves)

    @property
    def oldest_us(self) -> int:
        """Since when an event waits to be consumed, or an output to be written; 0: none does."""
        times = self.reader.oldest_us, self._unwritten.oldest_us
        return min((at_us for at_us in times if at_us), default=0)

    async def read(self) -> bool:
        """Read events, and confirm that all changes before them are known."""
        following = self._found.changes.next
        more = await self.reader.read({} if following is None else following.sequences)
        if more:
            await self._context.feed.confirm()
        return more

    async def load_changes(self) -> None:
        """Read the changes of patterns that are not known yet, and the name of the group."""
        changes = self._found.changes
        async with reading(self._context.pool) as connection:
            versions = await versions_of(connection, self._lease.group_id, [], changes.loaded)
            name = await group_name(connection, self._lease.group_id)
        self._owner = self._owner._replace(name=name or self._owner.name)
        changes.take(versions, self._found.running, self._all_cursors)

    async def consume(self) -> bool:
        """Apply the next changes that are due, and feed the next events; write what is due. Return
        whether there may be more to do at once.
        """
        applied = await self._apply_changes()
        following = self._found.changes.next
        upto = {} if following is None else following.sequences
        taken = self.reader.next(upto, limits.PATTERN_READ_EVENTS_MAX)
        if taken:
            await self._learn([stored.event for _, stored in taken])
            await self._context.turns.run(self._client_id, self._fed(taken))
            self._shed_if_too_large()
        self._announce_gaps()
        await self.save_if_due()
        return applied or bool(taken)

    async def save_if_due(self) -> float:
        """Write a checkpoint if it is time; return the seconds until it is."""
        unwritten, now_s = self._unwritten, self._context.clock.monotonic_s()
        interval_s, is_full = limits.CHECKPOINT_INTERVAL_S, unwritten.has_enough_events
        if not self._found.running:  # its events need only be recorded before retention needs them
            interval_s, is_full = limits.PATTERN_IDLE_CHECKPOINT_S, unwritten.has_enough_runs
        due_s = unwritten.since_s + interval_s
        is_behind = self._all_cursors != self._cursors
        if unwritten.outputs or unwritten.is_due or is_full or (is_behind and now_s >= due_s):
            await self.save()
            return limits.FORWARD_STREAMS_CHECK_S
        return due_s - now_s if is_behind else limits.FORWARD_STREAMS_CHECK_S

    async def save(self) -> None:
        """Write a checkpoint. Raises LeaseLost."""
        unwritten, clock = self._unwritten, self._context.clock
        cursors = self._all_cursors
        if not (unwritten.is_due or unwritten.outputs or cursors != self._cursors):
            return
        snapshot = await self._snapshot() if self._snapshot_is_due() else None
        await self._until_allowed(snapshot)
        await self._until_alive()
        checkpoint = Checkpoint(
            unwritten.start,
            self._order,
            cursors,
            unwritten.runs.runs,
            unwritten.added,
            unwritten.removed,
            unwritten.outputs,
            snapshot,
        )
        sent_s = clock.monotonic_s()
        async with reading(self._context.pool) as connection:
            await write(connection, self._lease, self._zone_name, checkpoint, self._totals)
        self._context.leases.renewed(self._lease, sent_s)
        metrics.PATTERN_OUTPUTS.inc(len(unwritten.outputs))
        self._context.turns.charge(self._client_id, unwritten.write_s)
        self._cursors = cursors
        self._unwritten = Unwritten(self._order, clock.monotonic_s())
        if snapshot is None and not unwritten.runs.count:
            # a row of the journal has events; after a restart without one, the changes are due
            self._unwritten.added, self._unwritten.removed = unwritten.added, unwritten.removed

    @property
    def _all_cursors(self) -> dict[int, Cursor]:
        """The last consumed event of each stream, also of those that were deleted."""
        return {**self._cursors, **self.reader.cursors}

    # --- changes ---

    async def _apply_changes(self) -> bool:
        """Apply the changes whose barriers the group has reached."""
        applied = False
        while True:
            change = self._found.changes.next
            if change is None or not change.is_reached(self.reader.cursors):
                return applied
            if self._unwritten.runs.count:  # a row of the journal begins with changes
                self._unwritten.is_due = True
                await self.save()
            await self._apply(change)
            applied = True

    async def _apply(self, change: BarrierChange) -> None:
        found, unwritten = self._found, self._unwritten
        for number in change.removed:
            found.remove(number)
            if number in unwritten.added:
                unwritten.added.remove(number)  # it got no event
            else:
                unwritten.removed.append(number)
        for version in change.added:
            if found.recalled(version):
                await self._add_recalling(version)
            else:
                found.add(version)
            unwritten.added.append(version.id)
            await asyncio.sleep(0)
        found.changes.applied(change)

    async def _add_recalling(self, version: StoredPatternVersion) -> None:
        """Add a version that recognises earlier events, and write what it finds with a snapshot, so
        that it is not asked again.
        """
        found = self._found
        recent = await recent_events(
            self._context.log,
            found.engine,
            self._all_cursors,
            found.recalled(version),
            self._visible,
        )
        outputs = await asyncio.to_thread(found.add, version, recent)  # it joins all of them
        self._unwritten.needs_snapshot = self._unwritten.is_due = True
        if recent:
            steps = self._taken(outputs, recent[-1][1], EventOutputs())
            await self._context.turns.run(self._client_id, steps)

    # --- events ---

    async def _learn(self, events: Sequence[Event]) -> None:
        await self._zone.learn(events, through=self._context.feed.applied.sequence)

    async def _visible(
        self, events: Sequence[tuple[int, StoredEvent]]
    ) -> list[tuple[int, StoredEvent]]:
        """Return the events that the owner of the group may see, each with its stream."""
        await self._learn([stored.event for _, stored in events])
        return [one for one in events if self._sees(*one)]

    def _sees(self, stream: int, stored: StoredEvent) -> bool:
        event, client = stored.event, self._owner.client
        if event.destinations or event.audience:
            groups = self._zone.groups_of(client) if event.audience else frozenset[str]()
            if not may_see(event, client, groups):
                return False
        return stream != SYSTEM_STREAM_ID or is_visible_in_zone(event, self._zone_name[1])

    def _fed(self, taken: Sequence[tuple[int, StoredEvent]]) -> Iterator[None]:
        """Feed events until there is enough to write, with a step for each pattern: an event may
        concern thousands of expensive ones.
        """
        engine, unwritten = self._found.engine, self._unwritten
        now_us, consumed = self._context.clock.now_us(), 0
        for stream, stored in taken:
            self.reader.consume(stream)
            consumed += 1
            event = stored.event
            is_expired = event.expires_at_us and event.expires_at_us <= now_us
            if is_expired or not self._sees(stream, stored):
                continue
            self._order += 1
            position = position_of(self._order, stream, stored)
            unwritten.runs.add(position)
            caused, self._last = EventOutputs(), (position, event)
            for outputs in engine.steps(position, event):
                if outputs:
                    yield from self._taken(outputs, event, caused)
                yield
            if unwritten.is_large:
                break
            yield
        self._since_snapshot += consumed
        metrics.PATTERN_EVENTS.inc(consumed)
        evaluated = engine.leaves.counters.evaluated
        metrics.PATTERN_EVALUATIONS.inc(evaluated - self._evaluated)
        self._evaluated = evaluated

    def _shed_if_too_large(self) -> None:
        """Discard half of the partial matches if the process has too many and it is the turn of
        this group. A restart would not repeat that, so a snapshot follows at once.
        """
        engine, memory = self._found.engine, self._context.memory
        is_due = memory.report(self._lease.group_id, self._client_id, engine.memory_bytes)
        if is_due and self._last is not None:
            for _ in self._taken(engine.shed_half(*self._last), self._last[1], EventOutputs()):
                pass  # it has an output for each pattern at most
            memory.report(self._lease.group_id, self._client_id, engine.memory_bytes)
            self._unwritten.needs_snapshot = self._unwritten.is_due = True

    def _taken(
        self, outputs: Sequence[AgentOutput], cause: Event, caused: EventOutputs
    ) -> Iterator[None]:
        """Note some of what one event caused, with a step for each output: one pattern may have a
        thousand. Beyond a limit its outputs are lost.
        """
        running, unwritten = self._found.running, self._unwritten
        for effect in effects_of(outputs, running, self._owner, cause, caused.numbers):
            if not isinstance(effect, OutputEvent):
                self._totals.take(effect)
                unwritten.is_due = True
            elif caused.take(effect):
                unwritten.add_output(effect, self._context.clock.now_us())
            else:
                self._totals.take(LostOutput(effect.running, "outputs_max", 1))
            yield

    def _announce_gaps(self) -> None:
        for gap in self.reader.gaps:
            self._totals.announce(self._gap_announcement(gap))
            self._unwritten.is_due = True
            metrics.GAPS.labels(code="gap").inc()
        self.reader.gaps.clear()

    def _gap_announcement(self, gap: StreamGap) -> Announcement:
        owner = self._owner
        attributes = {
            "client": owner.client,
            "pattern_group": owner.id,
            "name": owner.name,
            "stream": owner.streams.get(gap.stream, ""),
            "first": gap.first,
            "last": gap.last,
        }
        return Announcement("pattern_group.gap", attributes)

    # --- writing ---

    def _snapshot_is_due(self) -> bool:
        if self._unwritten.needs_snapshot:
            return True
        if self._since_snapshot >= limits.PATTERN_SNAPSHOT_EVENTS_MAX:
            return True
        return self._since_snapshot > 0 and self._context.clock.monotonic_s() >= self._snapshot_at_s

    async def _snapshot(self) -> NewSnapshot:
        """Return the state of the engines, in a thread: it may take long."""
        clock = self._context.clock
        began_s = clock.monotonic_s()
        state = await asyncio.to_thread(self._found.engine.state)
        ended_s = clock.monotonic_s()
        pause_s = (ended_s - began_s) / limits.PATTERN_SNAPSHOT_SHARE
        self._snapshot_at_s = ended_s + max(pause_s, limits.PATTERN_SNAPSHOT_INTERVAL_S)
        self._since_snapshot = 0
        metrics.PATTERN_STATE_BYTES.set(len(state))
        return NewSnapshot(sorted(self._found.running), state)

    async def _until_allowed(self, snapshot: NewSnapshot | None) -> None:
        """Wait until the hub's storage and the quotas of events per second admit what is to be
        written.
        """
        context, outputs = self._context, len(self._unwritten.outputs)
        size = self._unwritten.stored_bytes + (len(snapshot.state) if snapshot else 0)
        await context.space.wait_for(context.pool, size, self._lease.group_id)
        while outputs:
            async with reading(context.pool) as connection:
                zone_id, client_id = self._zone_name[0], self._client_id
                wait_s = await seconds_to_wait(connection, zone_id, client_id, outputs)
            if not wait_s:
                return
            await asyncio.sleep(min(wait_s, limits.PATTERN_RATE_WAIT_S_MAX))

    async def _until_alive(self) -> None:
        """Wait while the lease may have expired. Raises LeaseLost when that is certain."""
        leases = self._context.leases
        while not leases.alive(self._lease):
            if self._lease not in leases.held:
                raise LeaseLost
            await asyncio.sleep(limits.FORWARD_ACQUIRE_INTERVAL_S)
