"""The actor of a management request and its zone: a key in its own zone, or an operator in the zone
that the request names. Plain module.
"""

from typing import NamedTuple

from eventhub.access.grants import ACTIONS, to_listen
from eventhub.access.principal import Principal
from eventhub.base.errors import Forbidden


class Actor(NamedTuple):
    """An authenticated caller in one zone. `principal`: None for an operator, which may do all."""

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
        return self.may(to_listen(stream), stream)

    def require_listen(self, stream: str, *, field: str | None = None) -> None:
        """Raise Forbidden at `field` unless `may_listen`."""
        try:
            self.require(to_listen(stream), stream)
        except Forbidden as error:
            error.field = field
            raise

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
