"""Waiting for an event with a timeout. Plain module."""

import asyncio


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event; return False when the time is over.

    Not `asyncio.wait_for`: in Python 3.11 it loses a cancellation that comes at the moment of the
    event, and the cancelled task runs on for ever.
    """
    try:
        async with asyncio.timeout(max(seconds, 0)):
            await event.wait()
    except TimeoutError:
        return False
    return True
