"""The principal of a request: a key with its client, zone and grants. Plain module."""

from typing import NamedTuple

from eventhub.access.grants import Grant, allows, to_listen
from eventhub.access.tokens import Claims
from eventhub.base.errors import Forbidden
from eventhub.base.fair_queue import QueueOwner


class Principal(NamedTuple):
    """A live key, or the login behind an operator's connection token (operators_sql.py).

    `expires_at_us`: when the key or the token expires; None: never. `groups`: of the client.
    """

    key_id: int
    public_id: str
    client_id: int
    client: str
    zone_id: int
    zone: str
    grants: tuple[Grant, ...]
    expires_at_us: int | None
    narrowed: tuple[Grant, ...] | None = None  # of a connection token; both must allow
    groups: frozenset[str] = frozenset()

    @property
    def queue_owner(self) -> QueueOwner:
        """The owner that its work is counted for in fair queues."""
        return QueueOwner(self.zone_id, self.client_id)

    @property
    def is_operator(self) -> bool:
        """True for the principal of a login, which is no client."""
        return self.client_id < 0

    @property
    def manages_zone(self) -> bool:
        """True if the key, and its token, may manage the whole zone, not only some streams."""
        whole = Grant("manage", "*")
        return whole in self.grants and (self.narrowed is None or whole in self.narrowed)

    def may(self, action: str, stream: str) -> bool:
        """Return True if the key, and its token if any, allows the action on the stream."""
        return allows(self.grants, action, stream) and (
            self.narrowed is None or allows(self.narrowed, action, stream)
        )

    def may_listen(self, stream: str) -> bool:
        """Return True if the key may read the stream; `system` needs a manage grant."""
        return self.may(to_listen(stream), stream)

    def require_listen(self, stream: str) -> None:
        """Raise Forbidden unless `may_listen`."""
        self.require(to_listen(stream), stream)

    def require(self, action: str, stream: str) -> None:
        """Raise Forbidden, naming the missing grant, unless `may`."""
        if not self.may(action, stream):
            token = "" if self.narrowed is None else " or its token"
            raise Forbidden(
                f"This needs the grant {action}:{stream}, which the key {self.public_id}{token}"
                " does not have; ask an operator for it.",
                grant=Grant(action, stream).json(),
            )


def narrow(principal: Principal, claims: Claims) -> Principal:
    """Return the principal of a connection token: that of its key or login, limited to the token's
    lifetime and grants.
    """
    ends = [claims.expires_at_us]
    if principal.expires_at_us is not None:
        ends.append(principal.expires_at_us)
    return principal._replace(narrowed=claims.grants, expires_at_us=min(ends))
