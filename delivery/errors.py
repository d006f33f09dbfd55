"""Errors of deliveries, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import NotFound


class UnknownDelivery(NotFound):
    """This client has no such delivery, or it is no longer stored. List deliveries with GET
    /v1/deliveries.
    """
