"""Looks after all sockets of a process once in a while: slow readers, pings, lost confirmation of
grants. Plain.

Concurrency contract: one event loop; `run` is one task.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from delivery.sessions.frames import Frame
from delivery.sessions.pump import Pump
from eventhub import limits, metrics
from eventhub.access.gate import Gate
from eventhub.access.principal import Principal
from eventhub.errors import Overloaded, TooManyRequests
from eventhub.logs import get_logger

log = get_logger(__name__)

Abandon = Callable[[Frame], None]


class Kept(NamedTuple):
    """A socket under care.

    `abandon` sends a last frame without waiting and drops the connection soon after.
    """

    pump: Pump
    abandon: Abandon
    since_s: float


class Keeper:
    """The sockets of one process."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._kept: dict[int, Kept] = {}
        self._by_client: Counter[int] = Counter()

    def may_add(self, principal: Principal) -> None:
        """Raises Overloaded, TooManyRequests when there are too many sockets."""
        if len(self._kept) >= limits.SOCKETS_PER_PROCESS_MAX:
            raise Overloaded("This process has as many sockets as it may; try again.")
        if self._by_client[principal.client_id] >= limits.SOCKETS_PER_CLIENT_MAX:
            raise TooManyRequests(
                "This client has as many sockets as it may; close some.",
                sockets_max=limits.SOCKETS_PER_CLIENT_MAX,
                retry_after_s=10,
            )

    def add(self, pump: Pump, abandon: Abandon) -> None:
        self._kept[id(pump)] = Kept(pump, abandon, asyncio.get_running_loop().time())
        self._by_client[pump.principal.client_id] += 1
        metrics.SOCKETS.inc()

    def remove(self, pump: Pump) -> None:
        if self._kept.pop(id(pump), None) is not None:
            self._by_client[pump.principal.client_id] -= 1
            metrics.SOCKETS.dec()

    async def run(self) -> None:
        """Look after the sockets until cancelled."""
        was_fresh = True
        while True:
            await asyncio.sleep(limits.KEEPER_INTERVAL_S)
            fresh = self._gate.fresh()
            now_s = asyncio.get_running_loop().time()
            for kept in list(self._kept.values()):
                self._look(kept, now_s)
                if fresh != was_fresh:
                    kept.pump.waker.set()
            was_fresh = fresh
            metrics.SENT.flush()

    def _look(self, kept: Kept, now_s: float) -> None:
        pump, abandon, since_s = kept
        sending_since_s = pump.sending_since_s
        if sending_since_s is not None and now_s - sending_since_s > limits.SEND_STALL_S_MAX:
            log.info("slow_reader_told_to_resume", client=pump.principal.client)
            metrics.SLOW_READERS.inc()
            self.remove(pump)
            abandon(pump.resume_message())
            return
        pings = int((now_s - since_s) / limits.PING_INTERVAL_S)
        if pings != pump.pings_due or pump.expired():
            pump.pings_due = pings
            pump.waker.set()
