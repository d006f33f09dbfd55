"""Errors of registrations and endpoints, part of the one tree of eventhub/errors.py."""

from eventhub.errors import NotFound


class UnknownRegistration(NotFound):
    """This client has no such registration, or it has ended; list them with GET
    /v1/registrations.
    """

    code = "unknown_registration"
