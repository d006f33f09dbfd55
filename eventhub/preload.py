"""What the processes of the hub import, loaded once by the fork server, which forks them from
itself (eventhub/base/fork_server.py). Composition root. Django module.
"""

import importlib
import os
from contextlib import suppress

from eventhub import celery as worker  # before Django is named: Celery adapts to it, workers do not

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "eventhub.settings")

# isort: split
import celery.apps.beat
import celery.apps.worker
import celery.bin.celery  # noqa: F401
import kombu.transport.redis  # noqa: F401
from django.conf import empty, settings
from django.db import connections

import eventhub.settings
from eventhub import asgi, preflight  # noqa: F401 - the first sets Django up
from eventhub.base import env, metrics

COMMANDS = ("boot", "connect", "demo", "forward", "migrate", "web")
for _name in COMMANDS:
    importlib.import_module(f"eventhub.management.commands.{_name}")
preflight.own_migrations()
metrics.remove_files()


def adopt_environment() -> None:
    """Take again, in a forked process, what was taken from the environment of the fork server: the
    settings, the address of the broker, and the files of metrics.
    """
    env.forget_file()
    importlib.reload(eventhub.settings)
    settings._wrapped = empty
    for alias in connections:
        with suppress(AttributeError):  # it has none
            del connections[alias]
    connections._settings = None
    connections.__dict__.pop("settings", None)
    worker.configure()
    metrics.open_files()
