"""Makes zones, clients and channels, and those of the demo; announces each change."""

from collections.abc import Sequence
from pathlib import Path

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.dispatch import Signal
from django.utils import timezone

from eventhub import limits
from eventhub.access import credentials, key_services
from eventhub.access.actor import Actor
from eventhub.access.conditions import require_unchanged
from eventhub.access.credentials import DemoAccess
from eventhub.access.grants import ACTIONS, Grant
from eventhub.access.keys import digest_of
from eventhub.access.models import Channel, Client, Zone
from eventhub.access.selectors import live_clients
from eventhub.access.system import announce, announce_all, raw_connection
from eventhub.errors import ChannelConflict, Conflict, LimitReached, NotFound
from eventhub.eventlog import streams
from eventhub.eventlog.changes import Resource
from eventhub.eventlog.streams import StreamPolicy
from eventhub.eventlog.system import Announcement

# Sent inside the transaction that deletes a client, whose row is locked. Rooms above end what is
# theirs and return what is to be announced. They may hold heads, so nothing else is locked then.
client_ending = Signal()

DEFAULT_CHANNEL = "default"  # bit 63, in every zone, for events that name no channel
DEMO_STREAMS = ("github", "host")
DEMO_CHANNELS = ("disk", "cpu", "memory", "network", "github")  # bits 0, 1, 2, ...


def create_zone(*, name: str) -> Zone:
    """A new zone; Conflict if the name is taken."""
    try:
        with transaction.atomic():
            zone = Zone.objects.create(name=name)
            announce(zone=name, type="zone.created", attributes={})
    except IntegrityError as error:
        raise Conflict("There is a zone of that name.", field="name") from error
    return zone


def create_client(*, zone_id: int, name: str, groups: Sequence[str] = ()) -> Client:
    """A new client; Conflict if the zone has that name, LimitReached if it has too many.

    `groups`: names, ascending, each once.
    """
    with transaction.atomic():
        zone = lock_zone(zone_id=zone_id)
        clients = live_clients(zone_id=zone.pk)
        if clients.filter(name=name).exists():
            raise Conflict("This zone has a client of that name.", field="name")
        if clients.count() >= limits.CLIENTS_PER_ZONE_MAX:
            raise LimitReached(limit=limits.CLIENTS_PER_ZONE_MAX)
        client = Client.objects.create(zone=zone, name=name, groups=list(groups))
        announce(
            zone=zone.name,
            type="client.created",
            attributes={"client": name, "groups": client.groups},
            resource=client_resource(zone_id, name),
        )
    return client


def change_client(
    *, zone_id: int, name: str, groups: Sequence[str] | None, if_match: int | None = None
) -> Client:
    """Put the client into exactly these groups, ascending, each once; None leaves them. The same
    again changes nothing. Effective within a second everywhere. NotFound if there is none.
    """
    with transaction.atomic():
        client = _lock_client(zone_id, name)
        resource = client_resource(zone_id, name)
        require_unchanged(resource, if_match)
        if groups is not None and client.groups != list(groups):
            client.groups = list(groups)
            client.save(update_fields=["groups"])
            attributes = {"client": name, "groups": client.groups}
            announce(
                zone=client.zone.name,
                type="client.changed",
                attributes=attributes,
                resource=resource,
            )
    return client


def client_resource(zone_id: int, name: str) -> Resource:
    return Resource("client", zone_id, name)


def channel_resource(zone_id: int, name: str) -> Resource:
    return Resource("channel", zone_id, name)


def delete_client(*, zone_id: int, name: str, if_match: int | None = None) -> None:
    """End the client with its keys and whatever else it has, in one transaction; its name is free
    then. NotFound if there is none.
    """
    with transaction.atomic():
        client = _lock_client(zone_id, name)
        resource = client_resource(zone_id, name)
        require_unchanged(resource, if_match)
        told = key_services.revoke_keys_of(client=client)
        for _, ended in client_ending.send(sender=Client, client=client):
            told += ended
        client.deleted_at = timezone.now()
        client.save(update_fields=["deleted_at"])
        told.append(Announcement("client.deleted", {"client": name}, resource))
        announce_all(zone=client.zone.name, announcements=told)


def _lock_client(zone_id: int, name: str) -> Client:
    clients = live_clients(zone_id=zone_id).select_related("zone").filter(name=name)
    client = clients.select_for_update(of=("self",), no_key=True).first()
    if client is None:
        raise NotFound("This zone has no such client.", field="client")
    return client


def define_channel(
    *, zone_id: int, name: str, bit: int, if_match: int | None = None
) -> tuple[Channel, bool]:
    """Name a bit of the zone, and whether that is new.

    The same again changes nothing; a channel never moves (EMC-19).
    """
    if name == DEFAULT_CHANNEL:
        raise ChannelConflict("The channel `default` is bit 63 in every zone.", field="name")
    with transaction.atomic():
        zone = lock_zone(zone_id=zone_id)
        resource = channel_resource(zone_id, name)
        taken = Channel.objects.filter(zone=zone)
        found = taken.filter(name=name).first()
        require_unchanged(resource, if_match, there=found is not None)
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
        announce(zone=zone.name, type="channel.defined", attributes=attributes, resource=resource)
    return channel, True


def lock_zone(*, zone_id: int) -> Zone:
    """The zone, locked to the end of the transaction, so that what is counted in it stays so."""
    zone = Zone.objects.select_for_update(no_key=True).filter(pk=zone_id).first()
    if zone is None:
        raise NotFound("There is no such zone.", field="zone")
    return zone


def ensure_demo(credentials_file: Path) -> DemoAccess:
    """The demo's operator, client, key, streams and channels, in the zone `default`.

    What is there stays as it is; the file is rewritten only if it is missing or its key is dead.
    The operator comes first: to hash a password takes seconds on a busy machine, longer than a
    transaction may wait. The file comes last: without it all is done again.
    """
    written = credentials.read_access(credentials_file)
    access = written or credentials.new_access()
    _ensure_operator(access, reset=written is None)
    with transaction.atomic():
        zone, _ = Zone.objects.get_or_create(name="default")
        zone = lock_zone(zone_id=zone.pk)
        access = access._replace(key=_ensure_demo_key(zone, access.key))
        for bit, name in enumerate(DEMO_CHANNELS):
            _ensure_channel(zone, name, bit)
        for name in DEMO_STREAMS:
            _ensure_stream(zone, name)
    if access != written:
        credentials.write_access(credentials_file, access)
    return access


def _ensure_operator(access: DemoAccess, *, reset: bool) -> None:
    user = User.objects.filter(username=access.username).first()
    if user is None:
        User.objects.create_superuser(access.username, password=access.password)
    elif reset:  # the file is gone, and with it the only copy of the password
        user.set_password(access.password)
        user.save(update_fields=["password"])


def _ensure_demo_key(zone: Zone, text: str) -> str:
    client = live_clients(zone_id=zone.pk).filter(name=credentials.CLIENT).first()
    client = client or create_client(zone_id=zone.pk, name=credentials.CLIENT)
    live = key_services.live_keys(client_id=client.pk)
    if text and live.filter(digest=digest_of(text)).exists():
        return text
    grants = tuple(Grant(action, "*") for action in ACTIONS)
    terms = key_services.KeyTerms(grants, label="demo")
    actor = Actor(zone.pk, zone.name, None)
    return key_services.issue_key(actor=actor, client=client, terms=terms).text


def _ensure_channel(zone: Zone, name: str, bit: int) -> None:
    taken = Channel.objects.filter(zone=zone)
    if not (taken.filter(name=name).exists() or taken.filter(bit=bit).exists()):
        define_channel(zone_id=zone.pk, name=name, bit=bit)


def _ensure_stream(zone: Zone, name: str) -> None:
    connection = raw_connection()
    if streams.find_stream(connection, zone.pk, name) is None:
        policy = StreamPolicy()
        streams.create_stream(connection, zone.pk, name, policy)
        attributes = {"stream": name, **policy._asdict()}
        resource = Resource("stream", zone.pk, name)
        announce(zone=zone.name, type="stream.created", attributes=attributes, resource=resource)
