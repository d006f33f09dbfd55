"""The caller: a key with its client, zone and grants, or an operator; what it may do, and which
events it may see. Plain module.

Every path that exposes an event, or data derived from one, applies `is_shown`. An operator is no
client and sees every event of the zone it names.
"""

from typing import NamedTuple

from eventhub.access.addresses import Networks
from eventhub.access.grants import ACTIONS, Grant, allows, to_listen
from eventhub.access.quotas import EmitRates, ZoneStorageFull
from eventhub.access.sessions import ActingSession
from eventhub.access.tokens import Claims
from eventhub.base import caller, traced_call
from eventhub.base.errors import Forbidden
from eventhub.base.fair_queue import QueueOwner
from eventhub.event.audience import may_see
from eventhub.event.envelope import Event

OPERATOR_PREFIX = "operator:"  # of the client's name of an operator's principal
# the destinations of an event for operators only: no client can have this name
OPERATORS_ONLY = (f"{OPERATOR_PREFIX}*",)


class Principal(NamedTuple):
    """A live key, or the login behind an operator's connection token (credential_queries.py).

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
    rates: EmitRates | None = None  # None: no quota of emits
    storage_quota: int | None = None  # of stored bytes, if the zone has reached it
    sockets_bounded: bool = False  # the client or its zone has a quota of sockets
    session: ActingSession | None = None  # that the request acts through; it must allow as well
    networks: Networks | None = None  # from which the key may be used; None: from everywhere
    role: str = ""  # of the operator; a key has none

    @property
    def queue_owner(self) -> QueueOwner:
        """The owner that its work is counted for in fair queues."""
        return QueueOwner(self.zone_id, self.client_id)

    def beside_session(self) -> "Principal":
        """Return the principal as if its request did not act through a session."""
        return self if self.session is None else self._replace(session=None)

    def require_storage(self) -> None:
        """Raise ZoneStorageFull if the zone may not store more."""
        if self.storage_quota is not None:
            raise ZoneStorageFull(self.storage_quota)

    @property
    def is_operator(self) -> bool:
        """True for the principal of a login, which is no client."""
        return self.client_id < 0

    def identify(self) -> None:
        """Make this the caller of the present request, which the events of its changes name."""
        if self.is_operator:
            caller.identify("operator", operator=self.client.removeprefix(OPERATOR_PREFIX))
        else:
            session = "" if self.session is None else self.session.name
            caller.identify("key", key=self.public_id, client=self.client, session=session)
        traced_call.note_caller(caller.current(), self.zone_id)

    @property
    def manages_zone(self) -> bool:
        """True if the key, and its token, may manage the whole zone, not only some streams."""
        whole = Grant("manage", "*")
        return whole in self.grants and (self.narrowed is None or whole in self.narrowed)

    def may(self, action: str, stream: str) -> bool:
        """Return True if the key, and its token and session if any, allows the action on the
        stream.
        """
        if self.session is not None and not self.session.allows(action):
            return False
        return self._is_granted(action, stream)

    def may_listen(self, stream: str) -> bool:
        """Return True if the key may read the stream; `system` needs a manage grant."""
        if self.session is not None and not self.session.allows("listen"):
            return False
        return self._is_granted(to_listen(stream), stream)

    def require_listen(self, stream: str) -> None:
        """Raise Forbidden unless `may_listen`."""
        if self.session is not None:
            self.session.require("listen")
        self._require_grant(to_listen(stream), stream)

    def require(self, action: str, stream: str) -> None:
        """Raise Forbidden, naming the missing grant, or WrongSessionKind, unless `may`."""
        if self.session is not None:
            self.session.require(action)
        self._require_grant(action, stream)

    def _is_granted(self, action: str, stream: str) -> bool:
        return allows(self.grants, action, stream) and (
            self.narrowed is None or allows(self.narrowed, action, stream)
        )

    def _require_grant(self, action: str, stream: str) -> None:
        if not self._is_granted(action, stream):
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


class Actor(NamedTuple):
    """The caller of a management request and its zone: a key in its own zone, or an operator in the
    zone that the request names. `principal`: None for an operator, which may do all.
    """

    zone_id: int
    zone: str
    principal: Principal | None

    def may(self, action: str, stream: str) -> bool:
        return self.principal is None or self.principal.may(action, stream)

    def require(self, action: str, stream: str) -> None:
        """Raise Forbidden unless `may`.

        Managing anything other than a stream (clients, keys, channels) needs the pattern `*`.
        """
        if self.principal is not None:
            self.principal.require(action, stream)

    def may_listen(self, stream: str) -> bool:
        """Return True if the actor may read the stream; `system` needs a manage grant."""
        return self.principal is None or self.principal.may_listen(stream)

    def require_listen(self, stream: str, *, field: str | None = None) -> None:
        """Raise Forbidden at `field` unless `may_listen`."""
        try:
            if self.principal is not None:
                self.principal.require_listen(stream)
        except Forbidden as error:
            error.field = error.field or field
            raise

    @property
    def session(self) -> ActingSession | None:
        """The session that the request acts through."""
        return None if self.principal is None else self.principal.session

    def beside_session(self) -> "Actor":
        """Return the actor as if its request did not act through a session: for what a session of
        its kind does to others, such as an admin's to the registrations of a consumer.
        """
        if self.principal is None:
            return self
        return self._replace(principal=self.principal.beside_session())

    @property
    def manages_zone(self) -> bool:
        """True if the actor may manage the whole zone, not only some of its streams."""
        return self.principal is None or self.principal.manages_zone

    def require_zone_manager(self) -> None:
        """Raise Forbidden unless `manages_zone`: clients, keys and channels concern the whole zone,
        so a manage grant on some streams is not enough.
        """
        if not self.manages_zone:
            raise Forbidden(
                "This needs the grant manage:*, because it concerns the whole zone.",
                grant={"action": "manage", "streams": "*"},
            )

    def sees(self, stream: str) -> bool:
        """Return True if any grant covers the stream: each action shows what the stream is."""
        return any(self.may(action, stream) for action in ACTIONS)

    def require_operator(self) -> None:
        if self.principal is not None:
            raise Forbidden("Only an operator may do this; log in with POST /v1/session.")


def is_shown(event: Event, principal: Principal | None) -> bool:
    """Return True if the caller may see the event. An operator is None or a login's principal."""
    if principal is None or principal.is_operator:
        return True
    return may_see(event, principal.client, principal.groups)
