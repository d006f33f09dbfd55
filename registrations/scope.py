"""The scope of an actor: a key manages the registrations and endpoints of its own client, a manager
of the zone those of all its clients. Lists show only streams that the actor may listen to. Django
module.
"""

from typing import Any, NamedTuple, TypeVar

from django.db.models import Lookup, Model, Q, QuerySet, TextField

from eventhub.access.grants import SYSTEM
from eventhub.access.principal import Actor
from eventhub.access.selectors import find_client
from eventhub.base.errors import Forbidden, MissingField

Emitting = TypeVar("Emitting", bound=Model)


@TextField.register_lookup
class Like(Lookup):
    """The lookup `like`: SQL's LIKE with the given pattern."""

    lookup_name = "like"

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        left, values = self.process_lhs(compiler, connection)
        right, more = self.process_rhs(compiler, connection)
        return f"{left} LIKE {right}", [*values, *more]


class ListenableStreams(NamedTuple):
    """The streams that an actor may listen to, for a query: LIKE patterns (None: all streams except
    `system`), and whether `system` is one of them.
    """

    patterns: list[str] | None
    system: bool

    def streams(self, name: str = "stream__name") -> Q:
        """Return the condition for a queryset; `name`: the lookup of the stream's name."""
        if self.patterns is None and self.system:
            return Q()
        is_system = Q((name, SYSTEM))
        others = ~is_system
        if self.patterns is not None:
            any_of_them = Q((f"{name}__in", []))
            for pattern in self.patterns:
                any_of_them |= Q((f"{name}__like", pattern))
            others &= any_of_them
        return others | is_system if self.system else others


class Owner(NamedTuple):
    """A client of the actor's zone."""

    id: int
    name: str


def owner(*, actor: Actor, name: str | None) -> Owner:
    """Return the client with that name; None: the key's own. Raises Forbidden for another client if
    the actor is not a manager of the zone.
    """
    own = actor.principal
    if own is not None and name in (None, own.client):
        return Owner(own.client_id, own.client)
    if name is None:
        raise MissingField("An operator has no client of its own; give `client`.", field="client")
    actor.require_zone_manager()
    client = find_client(zone_id=actor.zone_id, name=name)
    return Owner(client.pk, client.name)


def scope(*, actor: Actor, name: str | None = None) -> int | None:
    """Return the id of the client to which the actor's requests are restricted; None: the zone."""
    if name is not None:
        return owner(actor=actor, name=name).id
    return None if actor.manages_zone or actor.principal is None else actor.principal.client_id


def require_some_listen(*, actor: Actor) -> None:
    """Raise Forbidden for a key that may listen to no stream, and WrongSessionKind for a request
    through a session that is no consumer: it may not see endpoints and groups.
    """
    own = actor.principal
    if own is not None and own.session is not None:
        own.session.require("listen")
    if own is not None and all(grant.action != "listen" for grant in own.grants):
        raise Forbidden(
            f"The key {own.public_id} has no grant to listen to any stream; ask an operator for"
            " one.",
            grant={"action": "listen", "streams": "*"},
        )


def listenable_streams(*, actor: Actor) -> ListenableStreams:
    """Return the streams that the actor may listen to."""
    patterns = like_patterns(actor=actor, action="listen")
    return ListenableStreams(patterns, actor.may_listen(SYSTEM))


def emitting_of(found: QuerySet[Emitting], *, actor: Actor) -> QuerySet[Emitting]:
    """Select, of what emits to a stream for a client, what an actor may see: of its own client, on
    streams that it may emit to; or everything in the zone for its managers.
    """
    found = found.filter(zone_id=actor.zone_id)
    if actor.manages_zone:
        return found
    patterns = like_patterns(actor=actor, action="emit")
    if patterns is not None:
        emits = Q(stream__name__in=[])
        for pattern in patterns:
            emits |= Q(stream__name__like=pattern)
        found = found.filter(emits)
    return found.filter(client_id=scope(actor=actor))


def like_patterns(*, actor: Actor, action: str) -> list[str] | None:
    """Return LIKE patterns of the streams that the actor's grants of an action cover; None: all.
    `*` is the only special character of a grant's pattern, and `_` the only special character of
    LIKE that a pattern may hold.
    """
    if actor.principal is None:
        return None
    own = [grant.pattern for grant in actor.principal.grants if grant.action == action]
    if "*" in own:
        return None
    return [text.replace("_", r"\_").replace("*", "%") for text in own]
