"""The session that a request acts through: a client's admin, supplier or consumer session, named by
the header `EventHub-Session`. It narrows what the key may do to the session's kind. Plain module.

The resource itself is in eventhub/sessions and registrations/sessions.
"""

from typing import LiteralString, NamedTuple

import orjson

from eventhub.access.names import valid_name
from eventhub.base import limits
from eventhub.base.errors import Conflict, EventHubError, Forbidden, NotFound

HEADER = "EventHub-Session"
ADMIN, SUPPLIER, CONSUMER = "admin", "supplier", "consumer"
GROUP = "group"  # of the session that has the position of a group that shares; no caller has it
_KINDS = {"emit": SUPPLIER, "listen": CONSUMER}  # the kind of session that an action needs

# Rows are SessionRow; parameters: client, name.
FIND_SESSION: LiteralString = """
    SELECT id, name, kind, suspended, supplies::text
      FROM sessions WHERE client_id = %s AND name = %s AND deleted_at IS NULL
"""


class UnknownSession(NotFound):
    """The client has no such session; list them with GET /v1/sessions, or create it first."""


class WrongSessionKind(Forbidden):
    """The request needs a session of another kind, or none: suppliers emit, consumers register and
    listen, admins create and delete sessions.
    """


class SessionSuspended(Conflict):
    """The session is suspended, so it emits nothing; resume it with PATCH
    /v1/sessions/{session}.
    """


class TypeNotSupplied(EventHubError):
    """The supplier session has not declared the event's domain and type; declare them in its
    `supplies`, or emit without the session.
    """

    status = 422


class SuppliedType(NamedTuple):
    """A declared type, or all types below one (`X.*`), or all types of a domain (`*`)."""

    domain: str
    type: str

    def holds(self, domain: str, type: str) -> bool:
        if domain != self.domain:
            return False
        if self.type.endswith("*"):
            return type.startswith(self.type[:-1])
        return type == self.type


class ActingSession(NamedTuple):
    """A session as requests act through it."""

    id: int
    name: str
    kind: str
    suspended: bool = False
    supplies: tuple[SuppliedType, ...] = ()

    def allows(self, action: str) -> bool:
        """Return True unless the action (`emit`, `listen`) needs another kind of session."""
        return _KINDS.get(action, self.kind) == self.kind

    def require(self, action: str) -> None:
        """Raise WrongSessionKind unless the session `allows` the action."""
        self.require_kind(_KINDS.get(action, self.kind))

    def require_kind(self, kind: str) -> None:
        """Raise WrongSessionKind for another kind."""
        if self.kind != kind:
            raise WrongSessionKind(
                f"This needs a session of kind {kind}; {self.name} is of kind {self.kind}. Name"
                f" another session in the header {HEADER}, or send the request without it.",
                field=HEADER,
                kind=kind,
            )

    def require_supplied(self, domain: str, type: str) -> None:
        """Raise SessionSuspended, or TypeNotSupplied with some of the declared types: those of the
        same domain first.
        """
        if self.suspended:
            raise SessionSuspended
        if any(each.holds(domain, type) for each in self.supplies):
            return
        near_first = sorted(self.supplies, key=lambda each: each.domain != domain)
        shown = near_first[: limits.SESSION_SUPPLIES_SHOWN_MAX]
        more = len(self.supplies) - len(shown)
        declared = ", ".join(f"{each.domain}::{each.type}" for each in shown)
        raise TypeNotSupplied(
            f"The session {self.name} supplies {declared}{f' and {more} more' if more else ''},"
            f" not {domain}::{type}. Declare the type in its `supplies`, or emit without the"
            " session.",
            field="type",
            supplies=[each._asdict() for each in shown],
            supplies_more=more,
        )


def session_name(text: str) -> str:
    """Return the name in the header. Raises InvalidName, FieldTooLong."""
    return valid_name(text.strip(), field=HEADER)


class SessionRow(NamedTuple):
    """A row of `FIND_SESSION`."""

    id: int
    name: str
    kind: str
    suspended: bool
    supplies: str  # JSON


def session_of(row: SessionRow | None) -> ActingSession:
    """Return the session of a row of `FIND_SESSION`. Raises UnknownSession without one."""
    if row is None:
        raise UnknownSession(field=HEADER)
    declared = orjson.loads(row.supplies)
    supplies = tuple(SuppliedType(item["domain"], item["type"]) for item in declared)
    return ActingSession(row.id, row.name, row.kind, row.suspended, supplies)
