"""The order of the producers' timestamps (RDY-51). Plain module."""

from heapq import heappop, heappush

from delivery.ordering.held import HeldEvent
from delivery.ordering.options import OrderSettings
from delivery.ordering.sorted_orders import NOW


class TimestampOrder:
    """Events by their `time`, the lowest first. An event goes when its time is less than now minus
    `occur_delay`: the time that an event with an earlier one may take to arrive.

    Without a `time` that of the append counts. One whose clock is ahead is held at most `hold_us`
    after its append; it then goes, and later ones are not compared with it.
    """

    sorts = True
    needs_all = False

    def __init__(self, settings: OrderSettings) -> None:
        self._delay_us = settings.occur_delay_us
        self._hold_us = settings.hold_us
        self._waiting: list[tuple[int, int, int, HeldEvent]] = []  # due, time, arrival
        self._ready: list[tuple[int, int, HeldEvent]] = []  # time, arrival
        self._last_us = 0  # the highest time that was taken in order

    def put(self, held: HeldEvent, now_us: int) -> None:
        time_us = _time_us(held)
        held.deadline_us = held.stored.appended_at_us + self._hold_us
        due_us = min(time_us + self._delay_us + 1, held.deadline_us)
        heappush(self._waiting, (due_us, time_us, held.arrival, held))

    def note_delivered(self, held: HeldEvent) -> None:
        """Ignore it: what comes again after a reconnect is sorted again."""

    def take(self, now_us: int, *, full: bool) -> HeldEvent | None:
        waiting, ready = self._waiting, self._ready
        while waiting and waiting[0][0] <= now_us:
            _, time_us, arrival, held = heappop(waiting)
            heappush(ready, (time_us, arrival, held))
        if ready:
            time_us, _, held = heappop(ready)
        elif full and waiting:
            _, time_us, _, held = heappop(waiting)
            held.disorder = "full"
        else:
            return None
        self._note_order(held, time_us, now_us)
        return held

    def _note_order(self, held: HeldEvent, time_us: int, now_us: int) -> None:
        if time_us < self._last_us:
            held.disorder = "late"
        elif time_us < now_us - self._delay_us:
            self._last_us = time_us
        elif not held.disorder:
            held.disorder = "hold"

    def wake_at_us(self) -> int | None:
        if self._ready:
            return NOW
        return self._waiting[0][0] if self._waiting else None


def _time_us(held: HeldEvent) -> int:
    return held.event.time_us or held.stored.appended_at_us
