"""Changes of zones, clients and channels, and the demo's data; each change is announced.
Django module.
"""

from collections.abc import Sequence
from pathlib import Path

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from eventhub.access import credentials
from eventhub.access.credentials import DemoAccess
from eventhub.access.grants import ACTIONS, SYSTEM, Grant
from eventhub.access.keys import digest_of
from eventhub.access.models import Channel, Client, Zone
from eventhub.access.principal import Actor
from eventhub.access.selectors import (
    DEFAULT_CHANNEL,
    find_zone,
    list_zones,
    live_clients,
    lock_client,
)
from eventhub.accounts import keys
from eventhub.accounts.signals import client_ending
from eventhub.api.announcements import announce_all, change_of, raw_connection
from eventhub.api.grace import end_of_grace
from eventhub.api.if_match import require_unchanged
from eventhub.base import limits
from eventhub.base.broker import DELETE_DUE, request_task
from eventhub.base.errors import ChannelConflict, Conflict, Forbidden, LimitReached, NotFound
from eventhub.event.envelope import HUB_SOURCE
from eventhub.event.json_codec import moment_text
from eventhub.eventlog import streams
from eventhub.eventlog.errors import NotDeleting, OnHold, ZoneDeleting
from eventhub.eventlog.models import Stream
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.streams import StreamPolicy
from eventhub.eventlog.system import Announcement

DEMO_STREAMS = ("github", "host")
DEMO_CHANNELS = ("disk", "cpu", "memory", "network", "github")  # bits 0, 1, 2, ...


def create_zone(*, name: str) -> Zone:
    """Create a zone. Raises Conflict if the name is taken."""
    try:
        with transaction.atomic():
            zone = Zone.objects.create(name=name)
            announce_all(zone=name, announcements=[Announcement("zone.created", {})])
    except IntegrityError as error:
        raise Conflict(
            "A zone with this name exists; choose another name.", field="name"
        ) from error
    return zone


def schedule_zone_deletion(*, name: str, grace_s: int | None) -> Zone:
    """Schedule the deletion of a zone with everything in it. Repeated without a time it changes
    nothing. Raises NotFound, OnHold with the `streams` under a hold.
    """
    with transaction.atomic():
        zone = _lock_zone_by_name(name)
        streams.lock_system(raw_connection())  # no hold is set meanwhile
        held = [*Stream.objects.filter(zone=zone, deleted_at=None).exclude(hold=None)]
        if held:
            raise OnHold(streams=sorted(one.name for one in held))
        if zone.deletes_at is None or grace_s is not None:
            zone.deletes_at = end_of_grace(grace_s)
            zone.save(update_fields=["deletes_at"])
            ends = {"deletes_at": moment_text(zone.deletes_at)}
            scheduled = Announcement("zone.deletion.scheduled", ends)
            announce_all(zone=name, announcements=[scheduled])
    if grace_s == 0:
        request_task(DELETE_DUE)
    return zone


def withdraw_zone_deletion(*, name: str) -> Zone:
    """Withdraw the scheduled deletion of a zone. Raises NotFound, NotDeleting."""
    with transaction.atomic():
        zone = _lock_zone_by_name(name)
        if zone.deletes_at is None or zone.deletes_at <= timezone.now():
            raise NotDeleting(field="name")
        zone.deletes_at = None
        zone.save(update_fields=["deletes_at"])
        announce_all(zone=name, announcements=[Announcement("zone.deletion.withdrawn", {})])
    return zone


def _lock_zone_by_name(name: str) -> Zone:
    if name in ("default", SYSTEM):
        raise Forbidden("The zone `default` and the stream `system` cannot be deleted.")
    return lock_zone(zone_id=find_zone(name=name).pk)


def create_client(*, zone_id: int, name: str, groups: Sequence[str] = ()) -> Client:
    """Create a client. Raises Forbidden for the name of the hub, Conflict if the name is taken,
    LimitReached.

    `groups`: names, ascending, each once.
    """
    if name == HUB_SOURCE:
        raise Forbidden(
            f"`{name}` is the source of the hub's own events; choose another name.", field="name"
        )
    with transaction.atomic():
        zone = lock_zone(zone_id=zone_id)
        require_zone_not_deleting(zone)
        clients = live_clients(zone_id=zone.pk)
        if clients.filter(name=name).exists():
            raise Conflict(
                "The zone has a client with this name; choose another name.", field="name"
            )
        if clients.count() >= limits.CLIENTS_PER_ZONE_MAX:
            raise LimitReached(limit=limits.CLIENTS_PER_ZONE_MAX)
        client = Client.objects.create(zone=zone, name=name, groups=list(groups))
        created = change_of("client.created", zone_id, name, groups=client.groups)
        announce_all(zone=zone.name, announcements=[created])
    return client


def change_client(
    *, zone_id: int, name: str, groups: Sequence[str] | None = None, if_match: int | None = None
) -> Client:
    """Set the client's groups: names, ascending, each once; None leaves them. Idempotent. Takes
    effect within a second everywhere. Raises NotFound.
    """
    with transaction.atomic():
        client = lock_client(zone_id=zone_id, name=name)
        require_unchanged(Resource("client", zone_id, name), if_match)
        if groups is not None and client.groups != list(groups):
            client.groups = list(groups)
            client.save(update_fields=["groups"])
            changed = change_of("client.changed", zone_id, name, groups=client.groups)
            announce_all(zone=client.zone.name, announcements=[changed])
    return client


def delete_client(*, zone_id: int, name: str, if_match: int | None = None) -> None:
    """Delete the client with its keys and everything that depends on it, in one transaction. Its
    name is free afterwards. Raises NotFound.
    """
    with transaction.atomic():
        client = lock_client(zone_id=zone_id, name=name)
        require_unchanged(Resource("client", zone_id, name), if_match)
        changes = keys.revoke_keys_of(client=client)
        ending = client_ending.send(sender=Client, client=client, connection=raw_connection())
        for _, ended in ending:
            changes += ended
        client.deleted_at = timezone.now()
        client.save(update_fields=["deleted_at"])
        changes.append(change_of("client.deleted", zone_id, name))
        announce_all(zone=client.zone.name, announcements=changes)


def define_channel(
    *, zone_id: int, name: str, bit: int, if_match: int | None = None
) -> tuple[Channel, bool]:
    """Define a channel: a name for a bit of the zone. Return it, and True if it is new.

    Idempotent; a channel keeps its bit for ever (EMC-19), also after its deletion: stored events
    carry it. A deleted channel is defined again with the same bit. Raises ChannelConflict.
    """
    if name == DEFAULT_CHANNEL:
        raise ChannelConflict("The channel `default` is bit 63 in every zone.", field="name")
    with transaction.atomic():
        zone = lock_zone(zone_id=zone_id)
        taken = Channel.objects.filter(zone=zone)
        found = taken.filter(name=name).first()
        resource = Resource("channel", zone_id, name)
        live = found is not None and found.deleted_at is None
        require_unchanged(resource, if_match, exists=live)
        if found is not None and found.bit == bit and live:
            return found, False
        if found is not None and found.bit != bit:
            raise ChannelConflict(
                f"The channel has the mask {1 << found.bit}, which cannot change.", field="mask"
            )
        other = taken.filter(bit=bit).first()
        if other is not None and other.name != name:
            state = "has" if other.deleted_at is None else "is deleted, and stored events carry"
            raise ChannelConflict(f"The channel `{other.name}` {state} this mask.", field="mask")
        require_zone_not_deleting(zone)
        channel = found or Channel(zone=zone, name=name, bit=bit)
        channel.deletes_at = channel.deleted_at = None
        channel.save()
        defined = change_of("channel.defined", zone_id, name, mask=str(1 << bit))
        announce_all(zone=zone.name, announcements=[defined])
    return channel, True


def schedule_channel_deletion(
    *, zone_id: int, name: str, grace_s: int | None, if_match: int | None = None
) -> Channel:
    """Schedule the deletion of a channel: nothing changes before its end. Repeated without a time
    it changes nothing. Raises NotFound.
    """
    with transaction.atomic():
        zone, channel = _lock_channel(zone_id, name)
        require_unchanged(Resource("channel", zone_id, name), if_match)
        if channel.deletes_at is None or grace_s is not None:
            channel.deletes_at = end_of_grace(grace_s)
            channel.save(update_fields=["deletes_at"])
            ends = moment_text(channel.deletes_at)
            scheduled = change_of("channel.deletion.scheduled", zone_id, name, deletes_at=ends)
            announce_all(zone=zone.name, announcements=[scheduled])
    if grace_s == 0:
        request_task(DELETE_DUE)
    return channel


def withdraw_channel_deletion(*, zone_id: int, name: str) -> Channel:
    """Withdraw the scheduled deletion of a channel. Raises NotFound, NotDeleting."""
    with transaction.atomic():
        zone, channel = _lock_channel(zone_id, name)
        if channel.deletes_at is None or channel.deletes_at <= timezone.now():
            raise NotDeleting(channel=name)
        channel.deletes_at = None
        channel.save(update_fields=["deletes_at"])
        withdrawn = change_of("channel.deletion.withdrawn", zone_id, name)
        announce_all(zone=zone.name, announcements=[withdrawn])
    return channel


def _lock_channel(zone_id: int, name: str) -> tuple[Zone, Channel]:
    if name == DEFAULT_CHANNEL:
        raise Forbidden("The channel `default` is bit 63 in every zone and cannot be deleted.")
    zone = lock_zone(zone_id=zone_id)
    channel = Channel.objects.filter(zone=zone, name=name, deleted_at=None).first()
    if channel is None:
        raise NotFound("This zone has no such channel.", field="channel")
    return zone, channel


def lock_zone(*, zone_id: int) -> Zone:
    """Return the zone, locked until the end of the transaction, so that counts in it are exact."""
    zones = list_zones().select_for_update(no_key=True)
    zone = zones.filter(pk=zone_id).first()
    if zone is None:
        raise NotFound("There is no such zone.", field="zone")
    return zone


def require_zone_not_deleting(zone: Zone) -> None:
    """Raise ZoneDeleting if the deletion of the zone is scheduled: it gets nothing new."""
    if zone.deletes_at is not None:
        raise ZoneDeleting(zone=zone.name, deletes_at=moment_text(zone.deletes_at))


def ensure_demo(credentials_file: Path) -> DemoAccess:
    """Create the demo's operator, client, key, streams and channels, in the zone `default`.

    Existing ones stay as they are; the file is rewritten only if it is missing or its key no longer
    lives. The operator is created first, outside of the transaction: hashing a password takes
    seconds on a busy machine. The file is written last: without it, the next call does all again.
    """
    written = credentials.read_access(credentials_file)
    access = written or credentials.new_access()
    _ensure_operator(access, reset=written is None)
    with transaction.atomic():
        zone, _ = Zone.objects.get_or_create(name=credentials.ZONE)
        zone = lock_zone(zone_id=zone.pk)
        access = access._replace(key=_ensure_demo_key(zone, access.key))
        _ensure_channels(zone)
        _ensure_streams(zone)
    if access != written:
        credentials.write_access(credentials_file, access)
    return access


def _ensure_operator(access: DemoAccess, *, reset: bool) -> None:
    """Create the operator. `reset`: the file, the only copy of the password, is missing."""
    rights = {"is_staff": True, "is_superuser": True}
    user, new = User.objects.get_or_create(username=access.username, defaults=rights)
    if new or reset:
        user.set_password(access.password)
        user.save(update_fields=["password"])


def _ensure_demo_key(zone: Zone, text: str) -> str:
    client = live_clients(zone_id=zone.pk).filter(name=credentials.CLIENT).first()
    client = client or create_client(zone_id=zone.pk, name=credentials.CLIENT)
    live = keys.live_keys(client_id=client.pk)
    if text and live.filter(digest=digest_of(text)).exists():
        return text
    grants = tuple(Grant(action, "*") for action in ACTIONS)
    actor = Actor(zone.pk, zone.name, None)
    terms = keys.KeyTerms(label="demo")
    issued = keys.issue_key(actor=actor, client=client, grants=grants, terms=terms)
    return str(issued.text)


def _ensure_channels(zone: Zone) -> None:
    existing = Channel.objects.filter(zone=zone).values_list("name", "bit")
    taken = {value for channel in existing for value in channel}
    for bit, name in enumerate(DEMO_CHANNELS):
        if taken.isdisjoint((name, bit)):
            define_channel(zone_id=zone.pk, name=name, bit=bit)


def _ensure_streams(zone: Zone) -> None:
    connection, policy = raw_connection(), StreamPolicy()
    for name in DEMO_STREAMS:
        if streams.find_stream(connection, zone.pk, name) is None:
            streams.create_stream(connection, zone.pk, name, policy)
            created = change_of("stream.created", zone.pk, name, **policy._asdict())
            announce_all(zone=zone.name, announcements=[created])
