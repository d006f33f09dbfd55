"""Makes zones, clients and channels; each change is announced in the stream `system` in its own
transaction.
"""

from django.db import IntegrityError, transaction

from eventhub import limits
from eventhub.access.models import Channel, Client, Zone
from eventhub.access.system import announce
from eventhub.errors import ChannelConflict, Conflict, LimitReached, NotFound

DEFAULT_CHANNEL = "default"  # bit 63, in every zone, for events that name no channel


def create_zone(*, name: str) -> Zone:
    """A new zone; Conflict if the name is taken."""
    try:
        with transaction.atomic():
            zone = Zone.objects.create(name=name)
            announce(zone=name, type="zone.created", attributes={})
    except IntegrityError as error:
        raise Conflict("There is a zone of that name.", field="name") from error
    return zone


def create_client(*, zone_id: int, name: str) -> Client:
    """A new client; Conflict if the zone has that name, LimitReached if it has too many."""
    with transaction.atomic():
        zone = lock_zone(zone_id=zone_id)
        clients = Client.objects.filter(zone=zone)
        if clients.filter(name=name).exists():
            raise Conflict("This zone has a client of that name.", field="name")
        if clients.count() >= limits.CLIENTS_PER_ZONE_MAX:
            raise LimitReached(limit=limits.CLIENTS_PER_ZONE_MAX)
        client = Client.objects.create(zone=zone, name=name)
        announce(zone=zone.name, type="client.created", attributes={"client": name})
    return client


def define_channel(*, zone_id: int, name: str, bit: int) -> tuple[Channel, bool]:
    """Name a bit of the zone, and whether that is new.

    The same again changes nothing; a channel never moves (EMC-19).
    """
    if name == DEFAULT_CHANNEL:
        raise ChannelConflict("The channel `default` is bit 63 in every zone.", field="name")
    with transaction.atomic():
        zone = lock_zone(zone_id=zone_id)
        taken = Channel.objects.filter(zone=zone)
        found = taken.filter(name=name).first()
        if found is not None and found.bit == bit:
            return found, False
        if found is not None:
            raise ChannelConflict(
                f"The channel has the mask {1 << found.bit} for good.", field="mask"
            )
        other = taken.filter(bit=bit).first()
        if other is not None:
            raise ChannelConflict(f"The mask is that of `{other.name}`.", field="mask")
        channel = Channel.objects.create(zone=zone, name=name, bit=bit)
        attributes = {"channel": name, "mask": str(1 << bit)}
        announce(zone=zone.name, type="channel.defined", attributes=attributes)
    return channel, True


def lock_zone(*, zone_id: int) -> Zone:
    """The zone, locked to the end of the transaction, so that what is counted in it stays so."""
    zone = Zone.objects.select_for_update(no_key=True).filter(pk=zone_id).first()
    if zone is None:
        raise NotFound("There is no such zone.", field="zone")
    return zone
