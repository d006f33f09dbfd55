"""`manage.py reencrypt`: encrypt the secrets of endpoints, sources and connectors under the
present EVENTHUB_SECRET_KEY. Django module.
"""

from typing import Any

from django.core.management.base import CommandError

from eventhub.base.env import read_env
from eventhub.management.command import HubCommand
from eventhub.postgresql.connections import blocking
from eventhub.preflight import UNSIGNED
from registrations.endpoints.reencryption import Progress, reencrypt
from registrations.endpoints.secrets import Keyring

_NAMED_MAX = 20


class Command(HubCommand):
    help = (
        "Encrypt the secrets of endpoints, sources and connectors under the present"
        " EVENTHUB_SECRET_KEY; those of EVENTHUB_SECRET_KEY_FALLBACKS decrypt them. It can be"
        " repeated. See docs/operations.md."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        env = read_env()
        if not env.secret_key:
            raise CommandError(UNSIGNED)
        keyring = Keyring((env.secret_key, *env.secret_key_fallbacks))
        with blocking(env.database_url, name="reencrypt") as connection:
            done = reencrypt(connection, keyring, self._report)
        self._report(done)
        if done.unreadable:
            raise CommandError(_unreadable(done))

    def _report(self, progress: Progress) -> None:
        self.say(f"{progress.read:,} secrets read, {progress.encrypted:,} encrypted again")


def _unreadable(done: Progress) -> str:
    first = ", ".join(sorted(done.unreadable)[:_NAMED_MAX])
    more = len(done.unreadable) - _NAMED_MAX
    return (
        f"Secrets of {len(done.unreadable):,} endpoints, sources and connectors are encrypted under"
        f" none of the keys: {first}{f' and {more:,} more' if more > 0 else ''}. Add the former key"
        " to EVENTHUB_SECRET_KEY_FALLBACKS and run this command again, or set their secrets again"
        " (POST /v1/endpoints/{endpoint}/secrets, POST /v1/sources/{source}/secrets, PATCH"
        " /v1/connectors/{connector})."
    )
