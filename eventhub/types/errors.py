"""Errors of event types, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import BadRequest, Conflict, EventHubError, NotFound


class TypeViolation(EventHubError):
    """The event is not what its type's definition says; see `field` and `reason`, and GET
    /v1/types/{domain}/{type}.
    """

    code = "type_violation"
    status = 422


class UndeclaredType(EventHubError):
    """This stream takes events of declared types only; declare it with PUT
    /v1/types/{domain}/{type}.
    """

    code = "undeclared_type"
    status = 422


class TypeTooCostly(EventHubError):
    """The check of the event against its type could take too long: it has too many values for what
    the definition asks of each; or send fewer events in a request.
    """

    code = "type_too_costly"
    status = 422


class InvalidSchema(BadRequest):
    """The definition is not a JSON Schema that the hub takes; see `field`."""

    code = "invalid_schema"


class UnknownType(NotFound):
    """This zone has no such type, or the type no such version; list them with GET /v1/types."""

    code = "unknown_type"


class IncompatibleType(Conflict):
    """Events of the version before would not satisfy the new one; see `breaks`, or declare it with
    the evolution `none`.
    """

    code = "incompatible_type"
