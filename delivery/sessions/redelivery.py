"""Events of a connected session that are delivered again, because its client asked for it. Plain
module.
"""

from itertools import islice

from delivery.listening.frames import Frame, FrameFormat
from delivery.listening.protocol import NOTHING_MATCHED
from delivery.listening.services import ListenerServices
from delivery.ordering.held import Tracked
from delivery.sessions.connected import ConnectedSession
from delivery.sessions.pulled_events import PulledEvent
from eventhub.base import limits, metrics

FoundAgain = tuple[Tracked, Frame | None]


async def read_again(
    services: ListenerServices, form: FrameFormat[Frame], session: ConnectedSession
) -> list[FoundAgain]:
    """Return the events to deliver again, a bounded number, with their frames; None for one that is
    gone, has expired or may not be seen any more. Raises DatabaseUnavailable.
    """
    return [
        (tracked, await _frame_again(services, form, session, tracked))
        for tracked in list(islice(session.again, limits.SESSION_REDELIVERED_PER_ROUND_MAX))
    ]


def take_again(session: ConnectedSession, found: list[FoundAgain]) -> list[Frame]:
    """Return the frames to send; events without one are settled."""
    frames: list[Frame] = []
    for tracked, frame in found:
        session.again.pop(tracked, None)
        if frame is None or tracked.settled:
            session.queue.settle(tracked)
            continue
        tracked.attempts += 1
        metrics.REDELIVERED.inc()
        frames.append(frame)
    return frames


async def _frame_again(
    services: ListenerServices,
    form: FrameFormat[Frame],
    session: ConnectedSession,
    tracked: Tracked,
) -> Frame | None:
    reader = session.readers.get(tracked.stream)
    if reader is None or tracked.settled:
        return None
    stored = await reader.read_again(tracked.sequence)
    matched = NOTHING_MATCHED if stored is None else await reader.matched_again(stored)
    if stored is None or not matched.ids:
        return None
    event = PulledEvent(reader, stored, matched, tracked.attempts + 1)
    return event.frame(services, form, session.name)
