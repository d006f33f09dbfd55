"""Errors of registrations, groups and endpoints, in the tree of eventhub/base/errors.py. Plain
module.
"""

from typing import Any

from eventhub.base import limits
from eventhub.base.errors import BadRequest, Conflict, EventHubError, NotFound


class RefusedAddress(BadRequest):
    """The URL leads to a private or local address; to allow it for callbacks of a zone, an operator
    adds `ZONE=ADDRESS` to EVENTHUB_CALLBACK_ALLOW.
    """


class UnknownRegistration(NotFound):
    """This client has no such registration, or it has ended; list them with GET
    /v1/registrations.
    """


class UnknownEndpoint(NotFound):
    """This client has no such endpoint, or it was deleted; list them with GET /v1/endpoints."""


class UnknownSecret(NotFound):
    """The endpoint has no such secret, or it has expired; list them with GET
    /v1/endpoints/{endpoint}/secrets.
    """


class SecretInUse(Conflict):
    """This is the current secret, which signs the callbacks; create a new one with `overlap_s` 0,
    which revokes it.
    """


class CredentialsBound(Conflict):
    """The endpoint's headers, authentication and certificates are meant for the host of its present
    URL; give them together with the new URL, or null to remove them.
    """


class CredentialsUnreadable(Conflict):
    """The stored headers cannot be decrypted, because they were encrypted under another
    EVENTHUB_SECRET_KEY; remove them with `"headers": null` and set them again.
    """


class EndpointInUse(Conflict):
    """Registrations name the endpoint; end them or give them another endpoint first."""


class EndpointUnverified(Conflict):
    """The receiver has not agreed to callbacks yet; POST /v1/endpoints/{endpoint}/verify asks it
    again, and the endpoint's `verification` says what was wrong with its answer.
    """


class NoHandshake(Conflict):
    """The endpoint needs no verification; set its `handshake` to `cloudevents` or `challenge`."""


class TransientStream(EventHubError):
    """A transient stream is in memory only, so its events are delivered to no endpoint and no
    session; listen to the stream, or register without them.
    """

    status = 422


class TooManyRegistrations(EventHubError):
    """The request has more registrations than the hub accepts at once; split it."""

    status = 413


class FiltersTooCostly(Conflict):
    """The filters together would need more evaluations for every event than the limit. Add an
    attribute's value, prefix or range to each filter, remove others, or spread them over clients or
    sockets.
    """

    def __init__(self, *, cost: int, used: int, stream: str | None = None) -> None:
        """Initialize with the cost of this filter and of the others: those of a client on a stream,
        or of a socket.
        """
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


class OtherOwner(Conflict):
    """The registration group belongs to another session than the registration; a registration is in
    a group of its own session, or of its own session group.
    """


class UnknownSessionGroup(NotFound):
    """The zone has no such session group, or it is another client's; list them with GET
    /v1/session-groups, or create it first.
    """


class SessionExists(Conflict):
    """The client has a session with this name; use it, or choose another name."""


class SessionGroupExists(Conflict):
    """The zone has a session group with this name; use it, or choose another name."""


class SessionGroupInUse(Conflict):
    """Sessions are members of the session group; remove them from it first, with
    `"group": null`.
    """


class GroupExists(Conflict):
    """The client has a group with this name; use it, or choose another name."""


class GroupInUse(Conflict):
    """Registrations name the group; end them or remove them from it first."""


class KeyTaken(Conflict):
    """Another live registration of the client has this `key` and a different definition; change
    that registration, or choose another key.
    """


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
