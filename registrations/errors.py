"""Errors of registrations and endpoints, part of the one tree of eventhub/errors.py."""

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
    """The filter has more parts than the hub takes; split it into several registrations."""

    code = "filter_too_large"
    status = 422


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
