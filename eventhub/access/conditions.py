"""Conditions on changes (EMC-12): `If-Match` takes the sequence of any reply, and `changed` and the
ETag of a resource say when it changed last.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.access.replies import current
from eventhub.access.system import raw_connection
from eventhub.errors import InvalidField
from eventhub.eventlog import changes
from eventhub.eventlog.changes import Resource

_SEQUENCE = re.compile(r'([0-9]{1,18})|"([0-9]{1,18})"')


def if_match(request: Request) -> int | None:
    """The sequence that the resource must not have changed after; None: no condition."""
    text = request.headers.get("If-Match")
    if text is None:
        return None
    found = _SEQUENCE.fullmatch(text.strip())
    if found is None:
        raise InvalidField("A condition is one sequence, bare or quoted.", field="If-Match")
    return int(found[1] or found[2])


def only_new(request: Request) -> bool:
    """`If-None-Match: *`: only if there is none."""
    text = request.headers.get("If-None-Match")
    if text is None:
        return False
    if text.strip() != "*" or "If-Match" in request.headers:
        raise InvalidField("Here it is `*`, and alone.", field="If-None-Match")
    return True


def tagged(body: Mapping[str, Any], resource: Resource, status: int = 200) -> Response:
    """The reply about one resource, with its ETag. Read in a change, it is no later than the change
    itself, or than the beginning of the call: what came since must not pass for seen.
    """
    reply = current()
    changed = reply.changes.get(resource) if reply else None
    if changed is None:
        [(_, changed)] = _last_changes(resource.kind, resource.zone_id, [resource.name])
        if reply and reply.place:
            changed = min(changed, reply.place.sequence)
    return Response({**body, "changed": changed}, status, headers={"ETag": f'"{changed}"'})


def with_changes(
    items: Iterable[Mapping[str, Any]], kind: str, zone_id: int, names: Iterable[str]
) -> list[dict[str, Any]]:
    """The items of a list, each with the sequence of its last change."""
    found = _last_changes(kind, zone_id, list(names))
    return [{**item, "changed": changed} for item, (_, changed) in zip(items, found, strict=True)]


def require_unchanged(resource: Resource, since: int | None) -> None:
    """Changed if the resource, whose row is locked, changed after `since`; None: no condition."""
    changes.require_unchanged(raw_connection(), resource, since)


def _last_changes(kind: str, zone_id: int, names: list[str]) -> list[tuple[str, int]]:
    found = changes.last_changes(raw_connection(), kind, zone_id, names)
    return [(name, found[name]) for name in names]
