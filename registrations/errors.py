"""Errors of registrations, groups and endpoints. Plain module."""

from typing import Any

from eventhub.base import limits
from eventhub.base.errors import BadRequest, Conflict, EventHubError, NotFound


class RefusedAddress(BadRequest):
    """The URL leads to a private or local address; to allow it, an operator adds it to
    EVENTHUB_CALLBACK_ALLOW.
    """

    code = "refused_address"


class UnknownRegistration(NotFound):
    """This client has no such registration, or it has ended; list them with GET
    /v1/registrations.
    """

    code = "unknown_registration"


class UnknownEndpoint(NotFound):
    """This client has no such endpoint, or it was deleted; list them with GET /v1/endpoints."""

    code = "unknown_endpoint"


class EndpointInUse(Conflict):
    """Registrations name the endpoint; end them or give them another endpoint first."""

    code = "endpoint_in_use"


class TransientStream(EventHubError):
    """A transient stream is in memory only, so callbacks for its events cannot be guaranteed;
    listen to the stream, or register without an endpoint.
    """

    code = "transient_stream"
    status = 422


class TooManyRegistrations(EventHubError):
    """The request has more registrations than the hub accepts at once; split it."""

    code = "too_many_registrations"
    status = 413


class FiltersTooCostly(Conflict):
    """The filters together would need more evaluations for every event than the limit. Add an
    attribute's value, prefix or range to each filter, remove others, or spread them over clients or
    sockets.
    """

    code = "filters_too_costly"

    def __init__(self, *, cost: int, used: int, stream: str | None = None) -> None:
        """Initialize with the cost of this filter and of the others, of a client or a socket."""
        others = f"the client's others on {stream}" if stream else "the others of this socket"
        numbers = f"This one costs {cost:,} and {others} {used:,} of {limits.FILTERS_TRIED_MAX:,}."
        message = f"{' '.join((type(self).__doc__ or '').split())} {numbers}"
        details: dict[str, Any] = {"cost": cost, "used": used, "cost_max": limits.FILTERS_TRIED_MAX}
        if stream:
            details["stream"] = stream
        super().__init__(message, field="filter", **details)


class UnknownGroup(NotFound):
    """This client has no such registration group; list them with GET /v1/registration-groups, or
    create it first.
    """

    code = "unknown_group"


class GroupExists(Conflict):
    """The client has a group with this name; use it, or choose another name."""

    code = "group_exists"


class GroupInUse(Conflict):
    """Registrations name the group; end them or remove them from it first."""

    code = "group_in_use"


class KeyTaken(Conflict):
    """Another live registration of the client has this `key` and a different definition; change
    that registration, or choose another key.
    """

    code = "key_taken"


class SignatureMismatch(EventHubError):
    """The `signature` of the request differs from the properties that the filter demands; correct
    one of the two, or omit the signature.
    """

    code = "signature_mismatch"
    status = 422


class NothingToIndex(Conflict):
    """The stream cannot use a match index; the message says why, and from how many registrations on
    the hub builds one.
    """

    code = "nothing_to_index"
