"""Creates, changes and deletes connectors; each change is announced in its transaction, and the
process that runs them is notified. Django module.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import orjson
from django.contrib.postgres.functions import TransactionNow
from django.db import transaction

from eventhub.access.principal import Actor
from eventhub.api.announcements import announce, raw_connection
from eventhub.base import limits
from eventhub.base.errors import BadRequest, InvalidField, LimitReached
from eventhub.event.inbound import JSON, stored_bytes
from eventhub.eventlog.resource_changes import Resource
from eventhub.streams.checked_event import stream_to_emit
from registrations.connectors import selectors
from registrations.connectors.errors import ConnectorExists
from registrations.connectors.kinds.registry import KINDS, parse_settings
from registrations.connectors.models import Connector, ConnectorState
from registrations.connectors.rows import InputRow, RowMap, event_of_row, fields_of
from registrations.connectors.statements import SQL, end_connectors
from registrations.endpoints.signing_secrets import keyring
from registrations.scope import Owner
from registrations.services import lock_owner
from registrations.sources.mapping import parse_map


class NewConnector(NamedTuple):
    """The fields of a connector to be created."""

    name: str
    stream: str
    kind: str
    url: str
    settings: dict[str, Any]
    mapping: dict[str, Any]
    on_refusal: str = "stop"
    enabled: bool = True


def create_connector(*, actor: Actor, owner: Owner, fields: NewConnector) -> Connector:
    """Create a connector of the client. Raises ConnectorExists, LimitReached, InvalidField, and
    what `stream_to_emit` raises.
    """
    stream = stream_to_emit(actor, fields.stream)
    if stream.policy.durability == "transient":
        message = "A transient stream shares no transaction with a position; choose another one."
        raise InvalidField(message, field="stream")
    kind = KINDS[fields.kind]
    with _located("settings"):
        parse_settings(kind, fields.settings)
    _check_map(fields.mapping)
    with transaction.atomic():
        lock_owner(owner.id)
        own = Connector.objects.filter(client_id=owner.id)
        if own.filter(name=fields.name).exists():
            raise ConnectorExists(field="name")
        if own.count() >= limits.CONNECTORS_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.CONNECTORS_PER_CLIENT_MAX)
        connector = Connector.objects.create(
            zone_id=actor.zone_id,
            client_id=owner.id,
            stream_id=stream.id,
            name=fields.name,
            kind=fields.kind,
            settings=fields.settings,
            mapping=fields.mapping,
            on_refusal=fields.on_refusal,
            enabled=fields.enabled,
            **_url(fields.kind, fields.url),
        )
        ConnectorState.objects.create(connector=connector)
        created = _shown(actor, connector)
        _announce(actor, "created", created)
    return created


def change_connector(*, actor: Actor, connector: Connector, given: Mapping[str, Any]) -> Connector:
    """Change the URL, the map, what happens at refused rows or whether it is enabled, of a
    connector whose row is locked. Equal values change nothing. Raises subclasses of BadRequest.
    """
    changes = {
        name: value
        for name, value in given.items()
        if name != "url" and getattr(connector, name) != value
    }
    if "mapping" in changes:
        _check_map(changes["mapping"])
    if "url" in given:
        changes |= _url(connector.kind, given["url"])
    if not changes:
        return connector
    Connector.objects.filter(pk=connector.pk).update(**changes, changed_at=TransactionNow())
    ConnectorState.objects.filter(pk=connector.pk).update(seen_at=None, error="", detail="")
    changed = _shown(actor, connector)
    _announce(actor, "changed", changed)
    return changed


def delete_connector(*, actor: Actor, connector: Connector) -> None:
    """Delete a connector, whose row is locked."""
    end_connectors(raw_connection(), [connector.pk])
    _announce(actor, "deleted", connector)


def try_row(connector: Connector, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of a row, with the body as text where it has one. Raises UnmappedDelivery,
    and what the emit route raises about the event.
    """
    mapping = given.get("mapping", connector.mapping)
    _check_map(mapping)
    mapped = RowMap(connector.name, parse_map(mapping), KINDS[connector.kind].usual)
    row = InputRow("test", orjson.dumps(given.get("row", {})), None, JSON, "")
    stored_bytes(event_of_row(mapped, row), client=connector.client_name, mask=1)
    return fields_of(mapped, row)


def _check_map(given: Any) -> None:
    with _located("mapping"):
        parse_map(given)


@contextmanager
def _located(name: str) -> Iterator[None]:
    """Name the field, or its part, that the block refuses."""
    try:
        yield
    except BadRequest as error:
        error.field = name if error.field is None else f"{name}.{error.field}"
        raise


def _url(kind: str, url: str) -> dict[str, Any]:
    """Return the columns of a URL. Raises InvalidField with a text that has nothing of it."""
    try:
        address = KINDS[kind].address(url)
    except ValueError as error:
        raise InvalidField(str(error), field="url") from None
    return {"address": address, "sealed": keyring().seal(url.encode())}


def _shown(actor: Actor, connector: Connector) -> Any:
    return selectors.connectors_of(actor=actor).get(pk=connector.pk)


def _announce(actor: Actor, change: str, connector: Connector) -> None:
    """Announce the change, last in the transaction; notify the process after its commit."""
    attributes = {
        "client": connector.client_name,
        "connector": connector.pk,
        "name": connector.name,
        "stream": connector.stream_name,
        "kind": connector.kind,
        "enabled": connector.enabled,
    }
    resource = Resource("connector", actor.zone_id, str(connector.pk))
    announce(zone=actor.zone, type=f"connector.{change}", attributes=attributes, resource=resource)
    transaction.on_commit(lambda: raw_connection().execute(SQL["notify"]), robust=True)
