"""Reads of zones, clients, keys and channels. What lies in another zone is not found."""

from django.db import models

from eventhub.access.models import ApiKey, Channel, Client, Zone
from eventhub.errors import NotFound


def find_zone(*, name: str) -> Zone:
    found = Zone.objects.filter(name=name).first()
    if found is None:
        raise NotFound("There is no such zone.", field="zone")
    return found


def list_zones(*, after: str, count: int) -> list[Zone]:
    return list(Zone.objects.filter(name__gt=after).order_by("name")[:count])


def find_client(*, zone_id: int, name: str) -> Client:
    found = live_clients(zone_id=zone_id).filter(name=name).first()
    if found is None:
        raise NotFound(
            "This zone has no such client. Correct the name, or create the client first"
            " (POST /v1/clients).",
            field="client",
        )
    return found


def list_clients(*, zone_id: int, after: str, count: int) -> list[Client]:
    found = live_clients(zone_id=zone_id).filter(name__gt=after).order_by("name")
    return list(found[:count])


def live_clients(*, zone_id: int) -> "models.QuerySet[Client]":
    """Without those that were deleted."""
    return Client.objects.filter(zone_id=zone_id, deleted_at__isnull=True)


def find_key(*, zone_id: int, public_id: str) -> ApiKey:
    """Also a revoked one."""
    keys = ApiKey.objects.select_related("client")
    found = keys.filter(client__zone_id=zone_id, public_id=public_id).first()
    if found is None:
        raise NotFound("This zone has no such key.", field="public_id")
    return found


def list_keys(*, client_id: int, after: str, count: int) -> list[ApiKey]:
    keys = ApiKey.objects.select_related("client")
    found = keys.filter(client_id=client_id, public_id__gt=after).order_by("public_id")
    return list(found[:count])


def list_channels(*, zone_id: int) -> list[Channel]:
    """All of the zone, at most 63, by bit."""
    return list(Channel.objects.filter(zone_id=zone_id).order_by("bit"))
