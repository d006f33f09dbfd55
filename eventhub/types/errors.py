"""Errors of event types, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import BadRequest, Conflict, EventHubError, NotFound


class TypeViolation(EventHubError):
    """The event does not satisfy the definition of its type; see `field`, `reason` and GET
    /v1/types/{domain}/{type}.
    """

    status = 422


class UndeclaredType(EventHubError):
    """The stream accepts only declared types; declare it with PUT /v1/types/{domain}/{type}."""

    status = 422


class TypeTooCostly(EventHubError):
    """Checking the event against its type could take too long: it has too many values for this
    definition. Shorten it, or send fewer events in a request.
    """

    status = 422


class InvalidSchema(BadRequest):
    """The definition is not a JSON Schema that the hub supports; see `field`."""


class UnknownType(NotFound):
    """The zone has no such type, or the type no such version; list types with GET /v1/types."""


class TypeDeleting(Conflict):
    """The type is to be deleted at `deletes_at`, so it gets no new version and no subtype. POST
    /v1/types/{domain}/{type}/restore withdraws the deletion until then.
    """


class TypeInUse(Conflict):
    """Other types have this type as a parent; delete the `subtypes` first."""


class IncompatibleType(Conflict):
    """Events of the previous version might not satisfy the new one; see `breaks`, or declare it
    with the evolution `none`.
    """
