"""The back office: Django's admin over the models, read-only, for admins. Django module.

Admins log in at the console, where attempts are counted. Each page is read in a read-only
transaction with a statement timeout.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.paginator import Paginator
from django.db import OperationalError, connection, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, URLResolver
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_http_methods
from django.views.static import serve
from psycopg.errors import QueryCanceled

from eventhub.access import roles
from eventhub.access.authentication import SESSION_KEY
from eventhub.access.operators import role_of
from eventhub.api.problems import problem_response
from eventhub.base import errors, limits

CONSOLE = "/console/"
STATIC = Path(admin.__file__).parent / "static" / "admin"
_ROUTES = frozenset({"index", "jsi18n", "app_list"})  # in addition to those of the models
_BEGIN = f"""
SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = '{limits.BACK_OFFICE_S_MAX}s'
"""
_SLOW = f"The query took longer than {limits.BACK_OFFICE_S_MAX} s. Narrow it with a filter.\n"
_POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"
View = Callable[..., HttpResponse]


class BackOffice(admin.AdminSite):
    """The site at /admin/."""

    site_title = site_header = "EventHub back office"
    index_title = "Stored data"
    site_url = CONSOLE

    def has_permission(self, request: HttpRequest) -> bool:
        return _is_logged_in(request) and roles.may(role_of(request.user), roles.ADMIN)

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Redirect to the console's login, and refuse an operator who is no admin with 403."""
        reading = _read_only(view)

        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if self.has_permission(request):
                return reading(request, *args, **kwargs)
            if _is_logged_in(request) and request.user.is_authenticated:
                return problem_response(
                    errors.Forbidden("The back office needs the role admin.", role=roles.ADMIN)
                )
            return HttpResponseRedirect(CONSOLE)

        found: View = require_http_methods(["GET", "HEAD", "POST"])(
            csrf_protect(never_cache(guarded))
        )
        return found

    def get_urls(self) -> list[URLPattern | URLResolver]:
        found = super().get_urls()
        return [
            route
            for route in found
            if isinstance(route, URLResolver) or route.name in _ROUTES or not route.name
        ]


def _is_logged_in(request: HttpRequest) -> bool:
    """Return True if a session cookie is set; it may contain NUL, which PostgreSQL refuses."""
    cookie = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    return SESSION_KEY.fullmatch(cookie) is not None


def _read_only(view: View) -> View:
    """Render the page within a read-only transaction."""

    @wraps(view)
    def reading(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(_BEGIN)
                response = view(request, *args, **kwargs)
                if hasattr(response, "render"):
                    response = response.render()
        except OperationalError as error:
            if not isinstance(error.__cause__, QueryCanceled):
                raise
            response = HttpResponse(_SLOW, status=503, content_type="text/plain")
        response["Content-Security-Policy"] = _POLICY
        return response

    return reading


def static_file(request: HttpRequest, path: str) -> HttpResponse:
    """Serve a style sheet, script or image of Django's admin."""
    found: HttpResponse = serve(request, path, document_root=STATIC)
    return found


class BoundedPaginator(Paginator):
    """A paginator that stops counting at `BACK_OFFICE_ROWS_MAX`."""

    @cached_property
    def count(self) -> int:
        return int(self.object_list.order_by()[: limits.BACK_OFFICE_ROWS_MAX].count())


class ReadOnly(admin.ModelAdmin):
    """The rows of a model, read-only. `hidden` fields appear nowhere."""

    hidden: frozenset[str] = frozenset()
    actions = None
    list_per_page = 50
    ordering: Sequence[str] = ("-pk",)
    paginator = BoundedPaginator
    show_full_result_count = False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [each.name for each in self.model._meta.fields if each.name not in self.hidden]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return self.get_fields(request, obj)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow lookups by the displayed filters only, so that hidden fields cannot be inferred."""
        filters = (one if isinstance(one, str) else one[0] for one in self.list_filter)
        return any(lookup == name or lookup.startswith(f"{name}__") for name in filters)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
