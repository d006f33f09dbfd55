"""Encrypts the secrets of endpoints, sources and connectors again, under the present
EVENTHUB_SECRET_KEY. SQL module.

It can be stopped at any time and run again: a secret that is encrypted under the present key is
left as it is. Workers go on meanwhile, since they decrypt with the former keys too.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.postgresql.rows import cursor_of
from registrations.endpoints.sealed import SQL
from registrations.endpoints.secrets import Keyring, Unsealable

_TABLES = (
    ("sealed_of_endpoints", "replace_of_endpoints"),
    ("sealed_secrets", "replace_secrets"),
    ("sealed_of_sources", "replace_of_sources"),
    ("sealed_of_connectors", "replace_of_connectors"),
)


class Progress(NamedTuple):
    """The secrets that were read and encrypted again, and the owners of secrets that none of the
    keys decrypts, such as `endpoint 7`.
    """

    read: int = 0
    encrypted: int = 0
    unreadable: frozenset[str] = frozenset()


class _Row(NamedTuple):
    id: int
    owner: str
    sealed: bytes


def reencrypt(
    connection: psycopg.Connection[Any], keyring: Keyring, report: Callable[[Progress], None]
) -> Progress:
    """Encrypt every secret under the first key of the keyring; call `report` after each batch.
    `connection` is in autocommit mode. Raise what psycopg raises.
    """
    progress = Progress()
    for select, update in _TABLES:
        after = 0
        while rows := _batch(connection, select, after):
            after = rows[-1].id
            progress = _reencrypt(connection, update, keyring, rows, progress)
            report(progress)
    return progress


def _batch(connection: psycopg.Connection[Any], select: str, after: int) -> list[_Row]:
    values = {"after": after, "rows_max": limits.SECRETS_REENCRYPTED_AT_ONCE}
    return cursor_of(connection, _Row).execute(SQL[select], values).fetchall()


def _reencrypt(
    connection: psycopg.Connection[Any],
    update: str,
    keyring: Keyring,
    rows: list[_Row],
    progress: Progress,
) -> Progress:
    changed, unreadable = [], set()
    for row in rows:
        try:
            if not keyring.is_current(row.sealed):
                changed.append((row.id, row.sealed, keyring.seal(keyring.unseal(row.sealed))))
        except Unsealable:
            unreadable.add(row.owner)
    if changed:
        ids, before, sealed = zip(*changed, strict=True)
        values = {"ids": [*ids], "before": [*before], "sealed": [*sealed]}
        connection.execute(SQL[update], values)
    return Progress(
        progress.read + len(rows),
        progress.encrypted + len(changed),
        progress.unreadable | unreadable,
    )
