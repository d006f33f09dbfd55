"""The rows of sessions and session groups that registrations belong to, in the caller's
transaction, and the positions of sessions. SQL module.

Locks are taken in the order of registrations/statements.py.
"""

from collections.abc import Iterable
from typing import NamedTuple

from eventhub.access.sessions import CONSUMER
from eventhub.base.errors import InvalidField
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars
from registrations.catalog import SessionOwner
from registrations.statements import Connection

SQL = queries.load("registrations/sql/sessions.sql")


class NamedSession(NamedTuple):
    """A session, or a session group, with its root group; only consumers have one."""

    name: str
    id: int
    kind: str
    root_id: int | None


class EndedSessions(NamedTuple):
    """The numbers of sessions and session groups that ended with their client."""

    sessions: int
    session_groups: int


def sessions_by_name(
    connection: Connection, client_id: int, names: Iterable[str]
) -> dict[str, NamedSession]:
    """Return the client's live sessions with these names. The lock of the owner retains them."""
    names = list(names)
    if not names:
        return {}
    values = (client_id, names)
    found = cursor_of(connection, NamedSession).execute(SQL["sessions_by_name"], values)
    return {one.name: one for one in found}


def require_consumer(session: NamedSession) -> NamedSession:
    """Return the session. Raises InvalidField unless it is a consumer session."""
    if session.kind != CONSUMER:
        raise InvalidField(
            f"Registrations belong to consumer sessions; {session.name} is of kind {session.kind}.",
            field="session",
        )
    return session


def lock_session_groups(
    connection: Connection, client_id: int, names: Iterable[str]
) -> dict[str, NamedSession]:
    """Return the client's live session groups with these names; no session joins or leaves them
    until the end of the transaction.
    """
    names = list(names)
    if not names:
        return {}
    values = (client_id, names)
    found = cursor_of(connection, NamedSession).execute(SQL["lock_session_groups"], values)
    return {one.name: one for one in found}


def start_cursors(connection: Connection, barrier: int) -> None:
    """Start the cursors of the sessions whose registrations begin at a barrier, which is filled, in
    the streams in which they have none.
    """
    connection.execute(SQL["start_cursors"], {"barrier": barrier})


def start_cursors_of_member(connection: Connection, session: int, barrier: int) -> None:
    """Start the cursors of a session that joined a group, at a barrier of the group's streams."""
    values = {"session": session, "barrier": barrier}
    connection.execute(SQL["start_cursors_of_member"], values)


def end_session_cursors(connection: Connection, session: int) -> None:
    """Delete the cursors of a session in the streams that none of its own registrations names."""
    connection.execute(SQL["end_session_cursors"], {"session": session})


def delete_cursors(connection: Connection, session: int) -> None:
    """Delete the cursors of a session that ends."""
    connection.execute(SQL["delete_cursors"], {"session": session})


def live_of_session(connection: Connection, owner: SessionOwner) -> list[int]:
    """Return the live registrations of a session or session group, ascending."""
    return scalars(connection).execute(SQL["live_of_session"], owner._asdict()).fetchall()


def delete_groups_of_session(connection: Connection, owner: SessionOwner) -> None:
    """Delete the registration groups of a session or session group, also its root."""
    connection.execute(SQL["delete_groups_of_session"], owner._asdict())


def end_sessions(connection: Connection, client_id: int) -> EndedSessions:
    """Delete the sessions and session groups of a client, whose owner is locked."""
    values = {"client_id": client_id}
    [ended] = cursor_of(connection, EndedSessions).execute(SQL["end_sessions"], values).fetchall()
    return ended
