"""What a command beside a running hub needs of its environment."""

from eventhub.env import read_env


class NoDatabaseUrl(Exception):
    """DATABASE_URL is not set. `manage.py up` prints the line that sets it."""


class NoArchiveUrl(Exception):
    """EVENTHUB_ARCHIVE_URL is not set. `manage.py up` prints the line that sets it."""


def require_archive() -> None:
    """Raises NoArchiveUrl: another place than the hub's would be another archive."""
    if not read_env().archive_url:
        raise NoArchiveUrl(
            "EVENTHUB_ARCHIVE_URL is not set: copy the line `export EVENTHUB_ARCHIVE_URL=…` from "
            "the banner of the running hub (manage.py up), or set it as the hub has it."
        )


def require_database() -> None:
    """Raises NoDatabaseUrl, at once: without a URL the driver would look for a server somewhere,
    for seconds."""
    if not read_env().database_url:
        raise NoDatabaseUrl(
            "DATABASE_URL is not set: copy the line `export DATABASE_URL=…` from the banner of "
            "the running hub (manage.py up)."
        )
