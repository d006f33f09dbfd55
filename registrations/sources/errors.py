"""Errors of sources, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import BadRequest, Conflict, EventHubError, NotFound


class UnknownSource(NotFound):
    """There is no such source: it was deleted, or its URL was replaced; list them with GET
    /v1/sources.
    """


class UnknownSample(NotFound):
    """The source has no such sample: newer requests have replaced it."""


class SourceExists(Conflict):
    """The client has a source with this name; choose another name."""


class SourceDisabled(Conflict):
    """The source is disabled; enable it with PATCH /v1/sources/{source}, and let the provider send
    the request again.
    """


class UnverifiedDelivery(EventHubError):
    """The request does not prove that it comes from the provider; see `reason`."""

    status = 401

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The scheme that a sender should use: of the provider `basic`, else the signature's."""
        scheme = b"Basic" if self.details.get("provider") == "basic" else b"Signature"
        return [*super().headers, (b"www-authenticate", scheme + b' realm="eventhub"')]


class UnmappedDelivery(BadRequest):
    """The map of the source finds no event in the request; try another map with POST
    /v1/sources/{source}/test.
    """

    status = 422
