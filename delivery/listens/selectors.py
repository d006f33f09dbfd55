"""Reads of the record of listens, as far as the actor may see the client and the streams."""

from django.db.models import F, QuerySet

from delivery.models import Listen
from eventhub.access.actor import Actor
from eventhub.access.system import raw_connection
from eventhub.eventlog import streams
from registrations.owners import heard, owner, require_some_listen


def listens_of(*, actor: Actor, client: str, stream: str | None) -> QuerySet[Listen]:
    """A client's listens to the streams that the actor may listen to, or to one of them. Forbidden
    for another client's, but to who manages the zone, and if there is no such stream.
    """
    whose = owner(actor=actor, name=client)
    shown = heard(actor=actor)
    found = Listen.objects.filter(shown.streams(), zone_id=actor.zone_id, client_id=whose.id)
    found = found.annotate(stream_name=F("stream__name"))
    if stream is not None:
        actor.require_listen(stream, field="stream")
        row = streams.get_stream(raw_connection(), actor.zone_id, stream)
        return found.filter(stream_id=row.id)
    if not shown.system:
        require_some_listen(actor=actor)
    return found
