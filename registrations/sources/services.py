"""Creates, changes and deletes sources, and replaces their URLs and secrets; each change is
announced in its transaction. Django module.
"""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django.contrib.postgres.functions import TransactionNow
from django.db import transaction
from django.db.models import F

from eventhub.access.principal import Actor
from eventhub.api.announcements import announce, raw_connection
from eventhub.base import limits
from eventhub.base.errors import BadRequest, InvalidField, LimitReached
from eventhub.eventlog.resource_changes import Resource
from eventhub.streams.checked_event import stream_to_emit
from registrations.endpoints.signing_secrets import keyring
from registrations.scope import Owner
from registrations.services import lock_owner
from registrations.sources import selectors
from registrations.sources.errors import SourceExists
from registrations.sources.mapping import parse_map
from registrations.sources.models import Source, SourceCount, SourceSecret
from registrations.sources.providers.registry import PROVIDERS, parse_options
from registrations.sources.receive import token_digest
from registrations.sources.statements import end_sources

_TOKEN_BYTES = 32


class NewSource(NamedTuple):
    """The fields of a source to be created; without a secret the hub generates one."""

    name: str
    stream: str
    provider: str
    options: dict[str, Any]
    mapping: dict[str, Any]
    enabled: bool = True
    secret: str | None = None


def create_source(*, actor: Actor, owner: Owner, fields: NewSource) -> Source:
    """Create a source of the client; the result has its `token` and the text of its `secret`.
    Raises SourceExists, LimitReached, InvalidField, and what `stream_to_emit` raises.
    """
    stream = stream_to_emit(actor, fields.stream)
    check_definition(fields.provider, {"options": fields.options, "mapping": fields.mapping})
    secret = _secret(fields.provider, fields.secret)
    token = _new_token()
    with transaction.atomic():
        lock_owner(owner.id)
        own = Source.objects.filter(client_id=owner.id)
        if own.filter(name=fields.name).exists():
            raise SourceExists(field="name")
        if own.count() >= limits.SOURCES_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.SOURCES_PER_CLIENT_MAX)
        source = Source.objects.create(
            zone_id=actor.zone_id,
            client_id=owner.id,
            stream_id=stream.id,
            name=fields.name,
            provider=fields.provider,
            options=fields.options,
            mapping=fields.mapping,
            enabled=fields.enabled,
            token_digest=token_digest(token),
        )
        SourceCount.objects.create(source=source)
        _insert_secret(source, secret)
        created = _shown(actor, source)
        created.token, created.secret = token, secret
        _announce(actor, "created", created)
    return created


def change_source(*, actor: Actor, source: Source, given: Mapping[str, Any]) -> Source:
    """Change the options, the map or whether it is enabled, of a source whose row is locked. Equal
    values change nothing. Raises subclasses of BadRequest.
    """
    changes = {name: value for name, value in given.items() if getattr(source, name) != value}
    if not changes:
        return source
    check_definition(source.provider, changes)
    Source.objects.filter(pk=source.pk).update(**changes, changed_at=TransactionNow())
    return _touched(actor, source)


def replace_url(*, actor: Actor, source: Source, overlap_s: int) -> Source:
    """Give a source whose row is locked a new URL; the result has its `token`. The one before it is
    valid for `overlap_s` seconds more.
    """
    token = _new_token()
    former: dict[str, Any] = {"former_digest": None, "former_expires_at": None}
    if overlap_s:
        end = TransactionNow() + timedelta(seconds=overlap_s)
        former = {"former_digest": F("token_digest"), "former_expires_at": end}
    values = {**former, "token_digest": token_digest(token), "changed_at": TransactionNow()}
    Source.objects.filter(pk=source.pk).update(**values)
    changed = _touched(actor, source)
    changed.token = token
    return changed


def replace_secret(
    *, actor: Actor, source: Source, overlap_s: int, secret: str | None = None
) -> Source:
    """Give a source whose row is locked a new secret; the result has its text as `secret`, if the
    hub generated it. The one before it is valid for `overlap_s` seconds more, those before end.
    """
    text = _secret(source.provider, secret)
    own = SourceSecret.objects.filter(source=source)
    current = own.filter(expires_at__isnull=True)
    own.exclude(pk__in=current.values("pk")).delete()
    if overlap_s:
        current.update(expires_at=TransactionNow() + timedelta(seconds=overlap_s))
    else:
        current.delete()
    _insert_secret(source, text)
    Source.objects.filter(pk=source.pk).update(changed_at=TransactionNow())
    changed = _touched(actor, source)
    changed.secret = text if secret is None else None
    return changed


def delete_source(*, actor: Actor, source: Source) -> None:
    """Delete a source, whose row is locked, with all that belongs to it."""
    end_sources(raw_connection(), [source.pk])
    _announce(actor, "deleted", source)


def check_definition(provider: str, given: Mapping[str, Any]) -> None:
    """Check the options and the map, if given. Raises subclasses of BadRequest with the field."""
    for name in ("options", "mapping"):
        if name not in given:
            continue
        try:
            if name == "options":
                parse_options(PROVIDERS[provider], given[name])
            else:
                parse_map(given[name])
        except BadRequest as error:
            error.field = name if error.field is None else f"{name}.{error.field}"
            raise


def _new_token() -> str:
    return secrets.token_urlsafe(_TOKEN_BYTES)


def _secret(provider: str, given: str | None) -> str:
    if given is None:
        return PROVIDERS[provider].new_secret()
    try:
        PROVIDERS[provider].check_secret(given)
    except ValueError as error:
        raise InvalidField(str(error), field="secret") from None
    return given


def _insert_secret(source: Source, text: str) -> None:
    SourceSecret.objects.create(source=source, sealed=keyring().seal(text.encode()))


def _touched(actor: Actor, source: Source) -> Source:
    changed = _shown(actor, source)
    _announce(actor, "changed", changed)
    return changed


def _shown(actor: Actor, source: Source) -> Any:
    return selectors.sources_of(actor=actor).get(pk=source.pk)


def _announce(actor: Actor, change: str, source: Source) -> None:
    """Announce the change; last in the transaction."""
    attributes = {
        "client": source.client_name,
        "source": source.pk,
        "name": source.name,
        "stream": source.stream_name,
        "provider": source.provider,
        "enabled": source.enabled,
    }
    resource = Resource("source", actor.zone_id, str(source.pk))
    announce(zone=actor.zone, type=f"source.{change}", attributes=attributes, resource=resource)
