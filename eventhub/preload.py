"""What the processes of the hub import, loaded once by the fork server (eventhub/base/fork_server.py),
which forks them from itself. Composition root. Django module.
"""

import importlib
import os

from eventhub import celery as worker  # before Django is named: Celery adapts to it, workers do not

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "eventhub.settings")

# isort: split
import celery.apps.beat  # noqa: F401
import celery.apps.worker  # noqa: F401
import celery.bin.celery  # noqa: F401
import kombu.transport.redis  # noqa: F401
from django.conf import empty, settings
from django.db import connections

import eventhub.settings
from eventhub import asgi  # noqa: F401 - sets Django up
from eventhub.base import env, metrics

COMMANDS = ("boot", "demo", "forward", "migrate", "web")
for _name in COMMANDS:
    importlib.import_module(f"eventhub.management.commands.{_name}")
metrics.remove_files()


def adopt_environment() -> None:
    """Take again, in a forked process, what was taken from the environment of the fork server: the
    settings, the address of the broker, and the files of metrics.
    """
    env.forget_file()
    importlib.reload(eventhub.settings)
    settings._wrapped = empty
    connections.__dict__.pop("settings", None)
    worker.configure()
    metrics.open_files()
