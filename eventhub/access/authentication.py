"""Who may enter the management API: an API key as bearer, or an operator's login.

Connection tokens may not.
"""

import re
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from eventhub.access.keys import digest_of, is_key
from eventhub.access.keys_sql import FIND_BY_DIGEST, principal_of
from eventhub.access.principal import Principal
from eventhub.errors import CsrfFailed, InvalidCredentials

SESSION_KEY = re.compile(r"[a-z0-9]{8,64}")


class KeyUser(NamedTuple):
    """What DRF calls a user: here a key."""

    principal: Principal
    is_authenticated: bool = True
    is_staff: bool = False


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer ehk_…`. request.user is a KeyUser, request.auth the Principal."""

    def authenticate(self, request: Request) -> tuple[KeyUser, Principal] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer" or not is_key(text.strip()):
            raise InvalidCredentials
        principal = find_principal(text.strip())
        return KeyUser(principal), principal

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="eventhub"'


def find_principal(text: str) -> Principal:
    """The live key of that text, asked of the database each time; InvalidCredentials if there is
    none.
    """
    with connection.cursor() as cursor:
        cursor.execute(FIND_BY_DIGEST, [digest_of(text)])
        row = cursor.fetchone()
    if row is None:
        raise InvalidCredentials
    return principal_of(row)


class OperatorAuthentication(SessionAuthentication):
    """A Django login of a staff user, with CSRF enforced on everything that writes."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        cookie = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        if not SESSION_KEY.fullmatch(
            cookie
        ):  # a quoted cookie may hold NUL, which no database takes
            return None
        found: tuple[Any, None] | None = super().authenticate(request)
        return found if found is not None and found[0].is_staff else None

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as error:
            raise CsrfFailed from error


class KeyScheme(OpenApiAuthenticationExtension):
    """How the OpenAPI document names the API key."""

    target_class = "eventhub.access.authentication.KeyAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "An API key, `ehk_…`."}


class OperatorScheme(OpenApiAuthenticationExtension):
    """How the OpenAPI document names the operator's login."""

    target_class = "eventhub.access.authentication.OperatorAuthentication"
    name = "operatorLogin"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.SESSION_COOKIE_NAME,
            "description": "POST /v1/session; writes also need X-CSRFToken.",
        }
