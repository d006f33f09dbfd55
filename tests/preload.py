"""What the processes in tests import: what those of the product do, and the command line. Where the
environment says so, they hash a password with one iteration: a million take a third of a second of
processor time at each login.
"""

import os

from eventhub import preload  # before Django is named, as there

# isort: split
import eventhub_client.commands.main  # noqa: F401
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from tests.forked import QUICK_PASSWORDS


def adopt_environment() -> None:
    """Take the settings again in a forked process, as the product's do."""
    preload.adopt_environment()
    if QUICK_PASSWORDS in os.environ:
        PBKDF2PasswordHasher.iterations = 1
