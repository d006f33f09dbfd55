"""Reads of zones, clients and channels. Rows of another zone are not found. Django module."""

from collections.abc import Iterable

from django.db import models

from eventhub.access.models import Channel, Client, Zone
from eventhub.access.principal import Actor, Principal
from eventhub.base import limits
from eventhub.base.errors import NotFound, UnknownChannel

DEFAULT_CHANNEL = "default"  # bit 63 in every zone; the channel of events that name none
NO_CLIENT = (
    "This zone has no such client. Correct the name, or create the client first (POST /v1/clients)."
)


def list_zones() -> "models.QuerySet[Zone]":
    """Select the zones that are not deleted."""
    return Zone.objects.filter(deleted_at__isnull=True)


def find_zone(*, name: str) -> Zone:
    found = list_zones().filter(name=name).first()
    if found is None:
        raise NotFound("There is no such zone.", field="zone")
    return found


def actor_of(key: Principal | None, *, zone: str | None) -> Actor:
    """Return the actor: a key in its zone, or an operator in the named one (None: `default`)."""
    if key is None:
        found = find_zone(name=zone or "default")
        return Actor(found.pk, found.name, None)
    if zone not in (None, key.zone):
        raise NotFound("There is no such zone.", field="zone")
    return Actor(key.zone_id, key.zone, key)


def find_client(*, zone_id: int, name: str) -> Client:
    found = live_clients(zone_id=zone_id).filter(name=name).first()
    if found is None:
        raise NotFound(NO_CLIENT, field="client")
    return found


def lock_client(*, zone_id: int, name: str) -> Client:
    """Return the client with its zone, locked until the end of the transaction."""
    clients = live_clients(zone_id=zone_id).select_related("zone").filter(name=name)
    found = clients.select_for_update(of=("self",), no_key=True).first()
    if found is None:
        raise NotFound("This zone has no such client.", field="client")
    return found


def live_clients(*, zone_id: int) -> "models.QuerySet[Client]":
    """Select the clients of a zone that are not deleted."""
    return Client.objects.filter(zone_id=zone_id, deleted_at__isnull=True)


def list_channels(*, zone_id: int) -> list[Channel]:
    """Return the channels of a zone by bit, at most 64; the last is `default`, which has no row."""
    return [one for one in channels_ever(zone_id=zone_id) if one.deleted_at is None]


def channels_ever(*, zone_id: int) -> list[Channel]:
    """Return the channels like `list_channels`, with the deleted ones, whose bits stored events may
    carry.
    """
    defined = Channel.objects.filter(zone_id=zone_id).order_by("bit")
    return [*defined, Channel(name=DEFAULT_CHANNEL, bit=63)]


def channel_mask(*, zone_id: int, channels: Iterable[str]) -> int:
    """Return the tag mask of the named channels. Raises UnknownChannel."""
    bits = {channel.name: channel.bit for channel in list_channels(zone_id=zone_id)}
    found = 0
    for name in channels:
        if name not in bits:
            raise UnknownChannel(channel=name[: limits.NAME_CHARS_MAX], field="channels")
        found |= 1 << bits[name]
    return found
