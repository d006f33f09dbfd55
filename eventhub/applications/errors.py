"""Errors of applications and their groups, part of the one tree of eventhub/base/errors.py.
Plain module.
"""

from eventhub.base.errors import NotFound


class UnknownApplication(NotFound):
    """The zone has no such application; list them with GET /v1/applications, or create one by
    reporting its state with PUT /v1/applications/{application}.
    """


class UnknownApplicationGroup(NotFound):
    """The zone has no such group of applications; list them with GET /v1/application-groups."""
