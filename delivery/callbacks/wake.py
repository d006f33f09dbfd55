"""Tells workers that there are new deliveries: a hint that may be lost, from a thread of its own,
so that whoever says it never waits and never hears of a failure. Plain.
"""

import threading
import time
from collections.abc import Callable

from eventhub import limits
from eventhub.logs import get_logger

log = get_logger(__name__)


class Waker:
    """Call `wake` as often as you like, from any thread; `send` is called in the waker's thread at
    most every CALLBACK_WAKE_INTERVAL_S, and may raise.
    """

    def __init__(self, send: Callable[[], None]) -> None:
        self._send = send
        self._asked = threading.Event()
        self._closed = False
        self._silent = False  # the last word did not get through
        self._thread = threading.Thread(target=self._main, name="wake", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._asked.set()

    def close(self) -> None:
        self._closed = True
        self._asked.set()
        self._thread.join(2 * limits.CALLBACK_WAKE_TIMEOUT_S)

    def _main(self) -> None:
        while self._asked.wait() and not self._closed:
            self._asked.clear()
            self._say()
            pause_s = limits.CALLBACK_WAKE_INTERVAL_S
            time.sleep(limits.CALLBACK_SCAN_INTERVAL_S if self._silent else pause_s)

    def _say(self) -> None:
        try:
            self._send()
            self._silent = False
        except Exception as error:  # whatever a client library raises when Redis is away
            if not self._silent:
                log.info("wake_not_sent", reason=type(error).__name__)
            self._silent = True
