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
from eventhub.eventlog.errors import Changed

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


def condition_of_put(request: Request) -> int | None:
    """What `require_unchanged` takes with `there`: 0 for `If-None-Match: *`."""
    since = if_match(request)
    return 0 if only_new(request) else since


def refuse_conditions(request: Request, *, kept: bool) -> None:
    """InvalidField for a condition where none is kept, so that none passes for kept."""
    known = {"PUT": ("If-Match", "If-None-Match"), "PATCH": ("If-Match",), "DELETE": ("If-Match",)}
    taken = known.get(request.method or "", ()) if kept else ()
    if request.method in ("GET", "HEAD"):
        return
    for name in ("If-Match", "If-None-Match"):
        if name in request.headers and name not in taken:
            raise InvalidField(f"A {request.method} here keeps no such condition.", field=name)


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


def require_unchanged(
    resource: Resource, since: int | None, *, there: bool = True, version: int | None = None
) -> None:
    """Changed if the resource, whose row is locked, changed after `since`, or is not there; 0: if
    it is there; None: no condition. Where it has versions, the refusal says which is the current.
    """
    try:
        _require_unchanged(resource, since, there=there)
    except Changed as error:
        if version is not None:
            error.details["version"] = version
        raise


def _require_unchanged(resource: Resource, since: int | None, *, there: bool) -> None:
    if since and not there:
        raise Changed(current=0)
    if since == 0:
        if there:
            [(_, current)] = _last_changes(resource.kind, resource.zone_id, [resource.name])
            raise Changed(current=current)
        return
    changes.require_unchanged(raw_connection(), resource, since)


def _last_changes(kind: str, zone_id: int, names: list[str]) -> list[tuple[str, int]]:
    found = changes.last_changes(raw_connection(), kind, zone_id, names)
    return [(name, found[name]) for name in names]
