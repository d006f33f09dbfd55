"""The timers of a worker's connection to Redis."""

import os
import time
from typing import Any

from kombu import Connection
from kombu.asynchronous import Hub

from eventhub.base.broker import broker_url
from eventhub.worker.celery_consumer import BINDINGS_LOOK_S, look_rarely


def test_the_expiry_of_control_queues_is_not_looked_at_every_second() -> None:
    """It woke an idle worker once a second, although their bindings last for an hour."""
    hub: Any = Hub()
    try:
        with Connection(broker_url(os.environ["REDIS_URL"])) as connection:
            transport = connection.transport
            transport.register_with_event_loop(connection.connection, hub)
            look = transport.cycle.maybe_refresh_binding_expiry
            look_rarely(transport, hub)
            pauses_s = [
                one.eta - time.monotonic()
                for one in hub.timer.queue
                if getattr(one.entry.fun, "__wrapped__", None) == look and not one.entry.canceled
            ]
        assert len(pauses_s) == 1
        assert pauses_s[0] > BINDINGS_LOOK_S / 2
    finally:
        hub.close()
