"""The drain in a thread with an event loop of its own, beside whatever else the process does."""

import asyncio
import resource
import threading
from collections.abc import Callable
from contextlib import suppress

import uvloop

from delivery.callbacks.drain import Drain, Terms
from eventhub import limits
from eventhub.logs import get_logger

log = get_logger(__name__)


class DrainThread:
    """Start it once, wake it from any thread, stop it once. `on_failure` is called if it ends by
    itself, which it never should.
    """

    def __init__(self, terms: Terms, on_failure: Callable[[], None]) -> None:
        self._terms = terms
        self._on_failure = on_failure
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain: Drain | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._main, name="callbacks", daemon=True)

    def start(self) -> None:
        """Returns when it can be woken and stopped; the database may be away. The process takes all
        descriptors it may have: requests that hang hold one each, and connections are kept.
        """
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._thread.start()
        self._ready.wait()

    def wake(self) -> None:
        """Look for due deliveries now."""
        if self._drain is not None:
            self._call(self._drain.wake)

    def stop(self) -> None:
        """Finish or give back what is under way, within a bound."""
        if self._stop is not None:
            self._call(self._stop.set)
        self._thread.join(limits.CALLBACK_STOP_S_MAX + 0.5)

    def _call(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: it has ended
            if self._loop is not None:
                self._loop.call_soon_threadsafe(what)

    def _main(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._run())
        except Exception:
            log.exception("callbacks_ended")
            self._on_failure()
        finally:
            self._ready.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._drain = Drain(self._terms)
        self._ready.set()
        await self._drain.run(self._stop)
