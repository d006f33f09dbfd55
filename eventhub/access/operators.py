"""Operators: the users of Django who have a role. Django module."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet, TextField
from django.db.models.expressions import RawSQL

from eventhub.access.credential_queries import role_in
from eventhub.access.roles import ADMIN, OPERATOR

_ROLE = RawSQL(role_in("auth_user"), (), output_field=TextField())  # noqa: S611 - a constant


def operators() -> "QuerySet[Any]":
    """Select the users with a role, as `role`; also those who are deactivated."""
    return User.objects.annotate(role=_ROLE).filter(role__isnull=False)


def role_of(user: Any) -> str:
    """Return the role of a user whose row was read for this request; "" for none. Only viewers take
    a query: their role is a membership (see `role_in`).
    """
    if user.is_active and user.is_staff:
        return ADMIN if user.is_superuser else OPERATOR
    found = operators().filter(pk=user.pk, is_active=True).values_list("role", flat=True).first()
    return found or ""
