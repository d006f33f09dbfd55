"""The grace period of a deletion: its query parameter and its end. Django module."""

from datetime import datetime, timedelta

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from eventhub.base import limits
from eventhub.base.errors import InvalidField

_MOST = limits.DELETION_GRACE_S_MAX
GRACE = OpenApiParameter(
    "grace_s",
    {"type": "integer", "minimum": 0, "maximum": _MOST, "default": limits.DELETION_GRACE_S_DEFAULT},
    description="The seconds until the deletion, in which it can be withdrawn.",
)


def read_grace(request: Request) -> int | None:
    """Return the grace period in seconds; None: not given. Raises InvalidField."""
    text = request.query_params.get("grace_s")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) <= _MOST):
        raise InvalidField(f"This must be a number of seconds from 0 to {_MOST}.", field="grace_s")
    return int(text)


def end_of_grace(grace_s: int | None) -> datetime:
    """Return the end of a period that begins now; None: of the default."""
    seconds = limits.DELETION_GRACE_S_DEFAULT if grace_s is None else grace_s
    return timezone.now() + timedelta(seconds=seconds)
