"""Errors of deliveries, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import NotFound


class UnknownDelivery(NotFound):
    """There is no such delivery for this client. List deliveries with GET /v1/deliveries."""

    code = "unknown_delivery"
