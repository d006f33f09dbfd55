"""A reader with one listener, as an iterator over batches of frames: server-sent events, long
polls, history, and the hub inside a process. Websockets have several listeners, served in rounds
(pump.py). Plain module.
"""

from collections.abc import AsyncGenerator

from delivery.listening.batch import BatchLimits
from delivery.listening.fan_out import DirectWriter, HeadReader
from delivery.listening.frames import Frame, FrameFormat, T
from delivery.listening.listener import StreamListener
from delivery.listening.reader import Reader
from eventhub.base.errors import DatabaseUnavailable


class SingleReader(Reader):
    """A reader with one listener. `idle`: it has received every event there is at the moment.

    With `waits_for_database` it waits, checked by the monitor, while the database is unavailable;
    else it gets DatabaseUnavailable.
    """

    idle = False
    writer: DirectWriter | None = None  # if frames can be written without a task
    every_event = False  # as in HeadReader
    waits_for_database = False
    last_message: Frame = b""

    def resume_message(self) -> Frame:
        return self.last_message


async def batches(
    reader: SingleReader, listener: StreamListener, form: FrameFormat[T], size: BatchLimits
) -> AsyncGenerator[list[T], None]:
    """Yield batches of frames without end; an empty one when the reader has to wait.

    Raises Unauthenticated and Forbidden when the reader loses its rights, DatabaseUnavailable
    unless it waits for the database, and what else StreamListener.fill raises. Close it
    (`aclosing`).
    """
    wakers = reader.wakers
    listener.watch(reader.waker, HeadReader(reader, form, reader.writer, reader.every_event))
    wakers.add(reader.waker)
    try:
        while True:
            reader.waker.clear()
            reader.idle = not await _filled(reader, listener)
            if not reader.idle:
                await listener.wait_for_slice()
                yield listener.next_frames(form, size)
                continue
            yield []
            await reader.waker.wait()
    finally:
        wakers.discard(reader.waker)
        listener.unwatch()


async def _filled(reader: SingleReader, listener: StreamListener) -> bool:
    """Return whether there are events, and the reader may receive them."""
    while True:
        before = reader.principal
        try:
            if not reader.waits_for_database:
                await reader.confirm()
            elif not await reader.confirmed():
                return False
            if reader.principal is not before:
                await listener.authenticate(reader.principal)
            filled = await listener.fill()
        except DatabaseUnavailable:
            reader.waiting = True
            if reader.waits_for_database:
                return False
            raise
        if not reader.changed():
            return filled
