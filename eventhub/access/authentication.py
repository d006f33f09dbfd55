"""Authentication of the management API: an API key as bearer, or an operator's login.
Django module.

Connection tokens are not accepted.
"""

import re
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import QueryDict
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from eventhub.access.addresses import require_allowed
from eventhub.access.credential_queries import FIND_BY_DIGEST, principal_of
from eventhub.access.keys import digest_of, is_key
from eventhub.access.operators import role_of
from eventhub.access.principal import Principal
from eventhub.base import caller
from eventhub.base.errors import CsrfFailed, InvalidCredentials

SESSION_KEY = re.compile(r"[a-z0-9]{8,64}")


class KeyAuthentication(BaseAuthentication):
    """Authentication by `Authorization: Bearer ehk_…`. Every request looks the live key up;
    request.user and request.auth are its Principal.
    """

    def authenticate(self, request: Request) -> tuple[Principal, Principal] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer" or not is_key(text.strip()):
            raise InvalidCredentials
        with connection.cursor() as cursor:
            cursor.execute(FIND_BY_DIGEST, [digest_of(text.strip())])
            row = cursor.fetchone()
        if row is None:
            raise InvalidCredentials
        principal = principal_of(row)
        require_allowed(principal.networks)
        principal.identify()
        return principal, principal

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="eventhub"'


class OperatorAuthentication(SessionAuthentication):
    """Authentication by the Django login of an operator, who has a role now; every write needs the
    CSRF token. request.user is the user, with its `role`.
    """

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        cookie = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
        # a quoted cookie may contain NUL, which PostgreSQL refuses
        found = super().authenticate(request) if SESSION_KEY.fullmatch(cookie) else None
        if found is None:
            return None
        found[0].role = role_of(found[0])
        if not found[0].role:
            return None
        caller.identify("operator", operator=found[0].get_username())
        return found

    def enforce_csrf(self, request: Request) -> None:
        """Raise CsrfFailed. The token is in a header: a form is not looked for in the body, which
        would be parsed before the caller is known.
        """
        request._request._post = QueryDict()
        try:
            super().enforce_csrf(request._request)
        except exceptions.PermissionDenied as error:
            raise CsrfFailed from error
