"""Errors of registrations and endpoints, part of the one tree of eventhub/base/errors.py.
Plain module.
"""

from typing import Any

from eventhub.base import limits
from eventhub.base.errors import BadRequest, Conflict, EventHubError, NotFound


class RefusedAddress(BadRequest):
    """The URL leads to a private or local address; EVENTHUB_CALLBACK_ALLOW names those that the hub
    may call.
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
    """Registrations name the endpoint; end them or give them another one first."""

    code = "endpoint_in_use"


class TransientStream(EventHubError):
    """A transient stream lives in memory, and nobody can owe what may be gone; listen to it
    instead, or register without an endpoint.
    """

    code = "transient_stream"
    status = 422


class TooManyRegistrations(EventHubError):
    """There are more registrations in the request than the hub takes at once; split it."""

    code = "too_many_registrations"
    status = 413


class FiltersTooCostly(Conflict):
    """More of the filters together would be tried for every event than may be. Let each ask for a
    value, a beginning or a range of an attribute too, take others away, or spread them over clients
    or sockets.
    """

    code = "filters_too_costly"

    def __init__(self, *, cost: int, used: int, stream: str | None = None) -> None:
        """What this one counts, and the others do: of a socket, or of a client on a stream."""
        others = f"the client's others on {stream}" if stream else "the others of this socket"
        numbers = f"This one counts {cost:,} and {others} {used:,} of {limits.FILTERS_TRIED_MAX:,}."
        message = f"{' '.join((type(self).__doc__ or '').split())} {numbers}"
        details: dict[str, Any] = {"cost": cost, "used": used, "cost_max": limits.FILTERS_TRIED_MAX}
        if stream:
            details["stream"] = stream
        super().__init__(message, field="filter", **details)


class UnknownGroup(NotFound):
    """This client has no such group of registrations; list them with GET /v1/registration-groups,
    or make it first.
    """

    code = "unknown_group"


class GroupExists(Conflict):
    """The client has a group of this name; use it, or take another name."""

    code = "group_exists"


class GroupInUse(Conflict):
    """Registrations name the group; end them or take them out of it first."""

    code = "group_in_use"


class KeyTaken(Conflict):
    """Another live registration of the client has this `key`, and asks for something else; change
    that one, or take another key.
    """

    code = "key_taken"


class NothingToIndex(Conflict):
    """The stream has no use for a match index; the message says why, and from how many
    registrations on one is built by itself.
    """

    code = "nothing_to_index"
