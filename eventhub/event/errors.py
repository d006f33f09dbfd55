"""Errors of the codecs, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import BadRequest, EventHubError


class MalformedXml(BadRequest):
    """The body is not well-formed XML, or has a DOCTYPE, which the hub rejects; see `line` and
    `column`.
    """


class InvalidXml(BadRequest):
    """The XML does not follow the schema of events; see `field`, `line` and `column`."""


class NotRepresentable(EventHubError):
    """The event has a value that this format cannot represent; see `field`, or accept another
    format.
    """

    status = 406


class ImmutableProperty(EventHubError):
    """The event is a copy of another one, and its type declares the property immutable; send the
    original value.
    """

    status = 422
