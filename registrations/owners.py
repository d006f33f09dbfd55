"""Whose registrations and endpoints an actor deals with: a key with those of its own client, a
zone's manager with those of any client of the zone. And of which streams: those it may listen to,
because what is in a stream is told to nobody else. Django module.
"""

from typing import Any, NamedTuple

from django.db.models import Lookup, Q, TextField

from eventhub.access.actor import Actor
from eventhub.access.grants import SYSTEM
from eventhub.access.selectors import find_client
from eventhub.base.errors import Forbidden, MissingField


@TextField.register_lookup
class Like(Lookup):
    """`LIKE`, with a pattern of its own."""

    lookup_name = "like"

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        left, values = self.process_lhs(compiler, connection)
        right, more = self.process_rhs(compiler, connection)
        return f"{left} LIKE {right}", [*values, *more]


class Heard(NamedTuple):
    """The streams that an actor may listen to, for a query: patterns of LIKE, None for all but
    `system`.
    """

    patterns: list[str] | None
    system: bool

    def streams(self) -> Q:
        """The same of a queryset whose rows have a `stream`."""
        if self.patterns is None and self.system:
            return Q()
        others = ~Q(stream__name=SYSTEM)
        if self.patterns is not None:
            any_of_them = Q(stream__name__in=[])
            for pattern in self.patterns:
                any_of_them |= Q(stream__name__like=pattern)
            others &= any_of_them
        return others | Q(stream__name=SYSTEM) if self.system else others


class Owner(NamedTuple):
    """A client of the actor's zone."""

    id: int
    name: str


def owner(*, actor: Actor, name: str | None) -> Owner:
    """The client of that name; None is the key's own. Forbidden if it is another's and the actor is
    no manager.
    """
    own = actor.principal
    if own is not None and name in (None, own.client):
        return Owner(own.client_id, own.client)
    if name is None:
        raise MissingField("An operator says whose it is: name the `client`.", field="client")
    actor.require_zone_manager()
    client = find_client(zone_id=actor.zone_id, name=name)
    return Owner(client.pk, client.name)


def scope(*, actor: Actor, name: str | None = None) -> int | None:
    """The id of the client whose things are looked for; None for those of the whole zone."""
    if name is not None:
        return owner(actor=actor, name=name).id
    return None if actor.manages_zone or actor.principal is None else actor.principal.client_id


def require_some_listen(*, actor: Actor) -> None:
    """Forbidden for a key that may listen to no stream at all: it has no business with where events
    go.
    """
    own = actor.principal
    if own is not None and all(grant.action != "listen" for grant in own.grants):
        raise Forbidden(
            f"This needs a grant to listen to some stream, which the key {own.public_id} does not"
            " have; ask an operator for it.",
            grant={"action": "listen", "streams": "*"},
        )


def heard(*, actor: Actor) -> Heard:
    """What of a list the actor is shown. `*` is the only special character of a pattern, and `_`
    the only one of LIKE that a pattern may hold.
    """
    system = actor.may_listen(SYSTEM)
    if actor.principal is None:
        return Heard(None, system)
    own = [grant.pattern for grant in actor.principal.grants if grant.action == "listen"]
    if "*" in own:
        return Heard(None, system)
    return Heard([text.replace("_", r"\_").replace("*", "%") for text in own], system)
