"""Errors of registrations and endpoints, part of the one tree of eventhub/errors.py."""

from typing import Any

from eventhub import limits
from eventhub.errors import BadRequest, Conflict, EventHubError, NotFound


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


class FilterSyntax(BadRequest):
    """The filter is not of its language; `line` and `column`, both from 1, say where."""

    code = "filter_syntax"


class UnknownLanguage(BadRequest):
    """There is no such filter language; GET /v1/languages lists them."""

    code = "unknown_language"


class FilterTooLarge(EventHubError):
    """The filter is larger than the hub takes; the message says in what."""

    code = "filter_too_large"
    status = 422

    def __init__(
        self,
        *,
        place: tuple[int, int] | None = None,
        field: str | None = None,
        **bound: int,
    ) -> None:
        """With the one bound that is passed, and the line and column where that is, if known."""
        message = " ".join(_TOO_LARGE[name].format(most) for name, most in bound.items())
        where = {} if place is None else {"line": place[0], "column": place[1]}
        super().__init__(message or None, field=field, **bound, **where)


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


_TOO_LARGE = {
    "chars_max": "A filter has at most {:,} characters, as a text and as the predicate language "
    "shows it; split it into several.",
    "parts_max": "A filter has at most {:,} words and constants, as the predicate language shows "
    "it; split it into several.",
    "depth_max": "Forms stand in each other at most {} deep; write them beside each other, or "
    "split the filter into several.",
    "path_chars_max": "A path has at most {:,} characters; take a shorter name.",
    "alternatives_max": "Taken apart, a filter comes to at most {} alternatives, each without an "
    "`or`; split it into several.",
    "tests_max": "Taken apart into alternatives, each without an `or`, a filter comes to at most "
    "{:,} tests; split it into several.",
    "steps_max": "Taking the filter apart into alternatives, each without an `or`, is too much "
    "work; put fewer of these into one `and`, or split it into several filters.",
}


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
