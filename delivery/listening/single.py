"""The only listen of one reader, as an iterator of what it is told: behind server-sent events,
long polls, history and the hub inside a process. Sockets have several, which take turns (pump.py).
Plain module.
"""

from collections.abc import AsyncGenerator

from delivery.listening.batch import Turn
from delivery.listening.frames import Form, Frame, T
from delivery.listening.listener import Listening
from delivery.listening.reader import Reader
from eventhub.base.errors import DatabaseUnavailable


class Single(Reader):
    """A reader with one listen. `idle`: it was told everything that there is at the moment.

    A patient one waits, in the keeper's care, while the database is away; another gets
    DatabaseUnavailable.
    """

    idle = False
    patient = False
    last_word: Frame = b""

    def resume_message(self) -> Frame:
        return self.last_word


async def told(
    reader: Single, listening: Listening, form: Form[T], turn: Turn
) -> AsyncGenerator[list[T], None]:
    """What the reader is told, turn by turn and without end; empty when it is woken for nothing.

    Raises Unauthenticated and Forbidden when it may no longer be told, DatabaseUnavailable to who
    is not patient, and what else Listening.fill raises. Close it (`aclosing`).
    """
    wakers = reader.wakers
    listening.watch(reader.waker)
    wakers.add(reader.waker)
    try:
        while True:
            reader.waker.clear()
            reader.idle = not await _filled(reader, listening)
            if not reader.idle:
                await listening.its_turn()
                yield listening.tell(form, turn)
                continue
            yield []
            await reader.waker.wait()
    finally:
        wakers.discard(reader.waker)
        listening.unwatch()


async def _filled(reader: Single, listening: Listening) -> bool:
    """True if there is something, and the reader may have it."""
    while True:
        before = reader.principal
        try:
            if not reader.patient:
                await reader.confirm()
            elif not await reader.confirmed():
                return False
            if reader.principal is not before:
                listening.seen_by(reader.principal)
            filled = await listening.fill()
        except DatabaseUnavailable:
            reader.waiting = True
            if reader.patient:
                return False
            raise
        if not reader.changed():
            return filled
