"""The roles of operators, and the only rule that compares them. Plain module.

Each route needs a role: `needed` by its method, unless it names another. The management API, the
hot routes and the back office call `require`; docs/access.md has the table of what each role may
do.
"""

from eventhub.base.errors import Forbidden

VIEWER = "viewer"  # reads everything, and changes nothing but its own password
OPERATOR = "operator"  # also changes everything but credentials of others and the zones
ADMIN = "admin"
ROLES = (VIEWER, OPERATOR, ADMIN)  # each may do what those before it may
_READS = ("GET", "HEAD", "OPTIONS")


def needed(method: str, named: str = "") -> str:
    """Return the role that a request needs: the one that its route names, else by its method."""
    return named or (VIEWER if method in _READS else OPERATOR)


def may(role: str, least: str) -> bool:
    """Return True if the role, "" for none, includes the least one."""
    return role in ROLES and ROLES.index(role) >= ROLES.index(least)


def require(role: str, least: str) -> None:
    """Raise Forbidden, naming the role that is needed, unless `may`."""
    if not may(role, least):
        raise Forbidden(
            f"This needs the role {least}; yours is {role or 'none'}. Ask an admin.", role=least
        )
