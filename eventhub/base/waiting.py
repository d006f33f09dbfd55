"""Waits for an event or until a time is over. Plain module."""

import asyncio


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """True as soon as the event is set, False when the time is over.

    Not `asyncio.wait_for`: in Python 3.11 it forgets a cancellation that comes at the moment of the
    event, and the task that was to end goes on for ever.
    """
    try:
        async with asyncio.timeout(max(seconds, 0)):
            await event.wait()
    except TimeoutError:
        return False
    return True
