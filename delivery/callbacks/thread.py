"""The dispatcher of a worker process, in a thread with its own event loop, which also makes the
process a member of the hub. SQL module.
"""

import asyncio
import resource
import threading
from collections.abc import Callable
from contextlib import suppress

import uvloop

from delivery.callbacks.dispatcher import CallbackDispatcher, DispatcherSettings
from eventhub.base import limits
from eventhub.base.garbage import freeze_loaded
from eventhub.base.logs import get_logger
from eventhub.monitoring.heartbeat import membership

log = get_logger(__name__)


class DispatcherThread:
    """A dispatcher to start once, run units of work on from any thread, and stop once.

    `request_unit` is called in the loop when a unit should start; `on_failure` if the dispatcher
    ends by itself, which is a bug.
    """

    def __init__(
        self,
        settings: DispatcherSettings,
        request_unit: Callable[[], None],
        on_failure: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._request_unit = request_unit
        self._on_failure = on_failure
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dispatcher: CallbackDispatcher | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._main, name="callbacks", daemon=True)

    def start(self) -> None:
        """Return when units can be run; the database may be unavailable. Raise the process's limit
        of file descriptors to the maximum: each hanging request holds one, and connections are kept
        alive.
        """
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        freeze_loaded()
        self._thread.start()
        self._ready.wait()

    def unit(self) -> int:
        """Run a unit of work; return the deliveries claimed. Raises DatabaseUnavailable."""
        loop, dispatcher = self._loop, self._dispatcher
        if loop is None or dispatcher is None:
            return 0
        return asyncio.run_coroutine_threadsafe(dispatcher.unit(), loop).result()

    @property
    def under_way(self) -> dict[str, int]:
        """What is being delivered, for display."""
        dispatcher = self._dispatcher
        return {} if dispatcher is None else dispatcher.under_way

    def leave(self) -> None:
        """Finish or give back what is under way; return at once."""
        with suppress(RuntimeError):  # the loop is closed: it has ended
            if self._loop is not None and self._stop is not None:
                self._loop.call_soon_threadsafe(self._stop.set)

    def stop(self) -> None:
        """Call `leave` and wait, for a bounded time, until the dispatcher has ended."""
        self.leave()
        self._thread.join(limits.CALLBACK_STOP_S_MAX + 0.5)

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
        async with membership("worker", self._settings.database_url) as member:
            self._dispatcher = CallbackDispatcher(self._settings, self._request_unit, member.beat)
            self._ready.set()
            try:
                await self._dispatcher.run(self._stop)
            finally:
                self._dispatcher = None
