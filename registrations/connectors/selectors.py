"""Reads of connectors. Django module."""

from datetime import timedelta

from django.db.models import Case, F, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Now

from eventhub.access.principal import Actor
from eventhub.base import limits
from registrations.connectors.models import Connector
from registrations.scope import emitting_of

STATES = ("starting", "running", "retrying", "stopped", "paused")
_STATE = ("error", "detail", "error_at", "lag", "caught_up_at", "position", "rows", "refused")


def connectors_of(*, actor: Actor) -> QuerySet[Connector]:
    """Select the connectors that an actor may see: of its own client, to streams that it may emit
    to; or all connectors of the zone for its managers.
    """
    stale = Q(connectorstate__seen_at__isnull=True) | Q(
        connectorstate__seen_at__lt=Now() - timedelta(seconds=limits.CONNECTOR_STALE_S)
    )
    state = Case(
        When(enabled=False, then=Value("paused")),
        When(stale, then=Value("starting")),
        default=F("connectorstate__state"),
        output_field=TextField(),
    )
    found = Connector.objects.annotate(
        client_name=F("client__name"),
        stream_name=F("stream__name"),
        row_at=F("connectorstate__row_at"),
        state=state,
        **{name: F(f"connectorstate__{name}") for name in _STATE},
    )
    return emitting_of(found, actor=actor)
