"""Errors of deliveries, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import Conflict, NotFound


class UnknownDelivery(NotFound):
    """This client has no such delivery, or it is no longer stored. List deliveries with GET
    /v1/deliveries.
    """


class DeliveryInProgress(Conflict):
    """A worker is posting the delivery; repeat the request in some seconds."""


class DeliveryState(Conflict):
    """The delivery is in a state in which this is not possible; see `state` and `possible`."""


class UnknownReplay(NotFound):
    """This client has no such replay run, or it ended long ago; list them with GET /v1/replays."""


class ReplayState(Conflict):
    """The replay run is in a state in which this is not possible; see `state`."""
