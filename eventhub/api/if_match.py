"""Conditional changes (EMC-12): `If-Match` takes the sequence of any reply; `changed` and the ETag
of a resource are the sequence of its last change. Django module.
"""

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.api.announcements import raw_connection
from eventhub.api.replies import current
from eventhub.base.errors import InvalidField
from eventhub.eventlog import resource_changes
from eventhub.eventlog.errors import Changed
from eventhub.eventlog.resource_changes import Resource

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="A sequence of `system`, from an ETag or any reply: 412 `changed` if the resource"
    " changed after it or does not exist.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="`*`: only if it does not exist."
)
CONDITIONS = {"PUT": (IF_MATCH, IF_NONE_MATCH), "PATCH": (IF_MATCH,), "DELETE": (IF_MATCH,)}

_SEQUENCE = re.compile(r'([0-9]{1,18})|"([0-9]{1,18})"')


def condition_of(request: Request) -> int | None:
    """Return the sequence after which the resource must not have changed, as the `since` of
    `require_unchanged`. 0 means that the resource must not exist; None means no condition.
    """
    text, new = request.headers.get("If-Match"), request.headers.get("If-None-Match")
    found = None if text is None else _SEQUENCE.fullmatch(text.strip())
    if text is not None and found is None:
        raise InvalidField("A condition is one sequence, bare or quoted.", field="If-Match")
    if new is not None and (new.strip() != "*" or found):
        raise InvalidField("The only value here is `*`, without If-Match.", field="If-None-Match")
    return int(found[1] or found[2]) if found else None if new is None else 0


def refuse_conditions(request: Request, known: Container[tuple[str, str]]) -> None:
    """Raise InvalidField for a condition on an operation without conditions, rather than ignore it.
    `known`: locations and names of the operation's parameters.
    """
    for one in (IF_MATCH, IF_NONE_MATCH):
        given = one.name in request.headers and request.method not in ("GET", "HEAD")
        if given and (one.location, one.name) not in known:
            message = f"This {request.method} does not support the condition; omit the header."
            raise InvalidField(message, field=one.name)


def tagged(body: Mapping[str, Any], resource: Resource, status: int = 200) -> Response:
    """Return the response about one resource, with its ETag: the sequence of the change that this
    call made, or of the last change before the call began. Later ones are not in the body.
    """
    reply = current()
    changed = reply.changes.get(resource) if reply else None
    if changed is None:
        changed = last_change(resource)
        if reply and reply.position:
            changed = min(changed, reply.position.sequence)
    return Response({**body, "changed": changed}, status, headers={"ETag": f'"{changed}"'})


def with_changes(
    items: Sequence[dict[str, Any]], kind: str, zone_id: int, names: Sequence[str]
) -> Sequence[dict[str, Any]]:
    """Add to each item of a list the sequence of its last change."""
    found = resource_changes.last_changes(raw_connection(), kind, zone_id, names)
    for item, name in zip(items, names, strict=True):
        item["changed"] = found[name]
    return items


def require_unchanged(
    resource: Resource, since: int | None, *, exists: bool = True, version: int | None = None
) -> None:
    """Raise Changed if the resource, whose row is locked, changed after `since` or does not exist;
    for 0, if it exists; for None, never. `version`: its current version, for the error's details.
    """
    try:
        if since and not exists:
            raise Changed(current=0)
        if since == 0 and exists:
            raise Changed(current=last_change(resource))
        if since:
            resource_changes.require_unchanged(raw_connection(), resource, since)
    except Changed as error:
        if version is not None:
            error.details["version"] = version
        raise


def last_change(resource: Resource) -> int:
    """Return the sequence in `system` of the resource's last change."""
    kind, zone_id, name = resource
    return resource_changes.last_changes(raw_connection(), kind, zone_id, [name])[name]
