"""Turns whatever a view raises into `application/problem+json`: our errors, DRF's, Django's and the
database's. Django module.

Nothing here shows a stack trace or HTML; what is not foreseen is logged and answered as `internal`.
"""

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import django.db
import psycopg
from django.core import exceptions as django_errors
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions as drf_errors
from rest_framework.response import Response

from eventhub.base import errors
from eventhub.base.logs import get_logger
from eventhub.eventlog.errors import StorageFull

CONTENT_TYPE = "application/problem+json"
_LOG = get_logger(__name__)

_AWAY = (
    "The database is away. A change may or may not have been stored: try again after Retry-After"
    " seconds; where repeating is not the same again, look first."
)
# first match wins, so subclasses stand before their bases
_OURS: dict[type[errors.EventHubError], tuple[type[BaseException], ...]] = {
    errors.NotFound: (Http404, drf_errors.NotFound),
    errors.MethodNotAllowed: (drf_errors.MethodNotAllowed,),
    errors.Unauthenticated: (drf_errors.NotAuthenticated,),
    errors.InvalidCredentials: (drf_errors.AuthenticationFailed,),
    errors.UnsupportedMediaType: (drf_errors.UnsupportedMediaType,),
    errors.Forbidden: (drf_errors.PermissionDenied, django_errors.PermissionDenied),
    errors.MalformedJson: (drf_errors.ParseError,),
    errors.TooManyRequests: (drf_errors.Throttled,),
    errors.BodyTooLarge: (django_errors.RequestDataTooBig,),
    errors.BadRequest: (
        *(django_errors.SuspiciousOperation, MultiPartParserError),
        *(django.db.DataError, psycopg.DataError),
    ),
    errors.DatabaseUnavailable: (
        *(django.db.OperationalError, django.db.InterfaceError),
        *(psycopg.OperationalError, psycopg.InterfaceError),
    ),
}
_BY_VALIDATION_CODE: dict[str, type[errors.BadRequest]] = {
    "required": errors.MissingField,
    "unknown_field": errors.UnknownField,
    "max_length": errors.FieldTooLong,
    "max_string_length": errors.FieldTooLong,
    "invalid_name": errors.InvalidName,
}


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's EXCEPTION_HANDLER: every error of a view as a problem, with the headers that belong to
    it.
    """
    found = as_error(error)
    return Response(
        found.problem(), found.status, headers=headers(found), content_type=CONTENT_TYPE
    )


def as_error(error: BaseException) -> errors.EventHubError:
    """The error of ours that says what happened; the unforeseen is logged with its trace and
    becomes `internal`.
    """
    if isinstance(error, errors.EventHubError):
        return error
    if any(isinstance(one, psycopg.errors.DiskFull) for one in (error, error.__cause__)):
        return StorageFull(retry_after_s=1)
    if isinstance(error, drf_errors.ValidationError):
        return validation_error(error)
    if isinstance(error, django_errors.DisallowedHost):
        return errors.BadRequest("The Host header is not one of EVENTHUB_ALLOWED_HOSTS.")
    ours = next((ours for ours, kinds in _OURS.items() if isinstance(error, kinds)), None)
    if ours is errors.DatabaseUnavailable:
        _LOG.warning("database_unavailable", reason=str(error).strip())
        return ours(_AWAY)  # it may have gone during the commit
    if ours is not None:
        return ours()
    _LOG.error("unforeseen_error", exc_info=error)
    return errors.EventHubError()


def validation_error(error: drf_errors.ValidationError) -> errors.EventHubError:
    """The first complaint of a serializer as an error with its field's dotted path."""
    path, complaint = next(_complaints(error.detail, ()))
    kind = _BY_VALIDATION_CODE.get(complaint.code, errors.InvalidField)
    own = kind in (errors.InvalidField, errors.FieldTooLong)
    return kind(str(complaint) if own else None, field=".".join(path) or None)


def _complaints(details: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A list holds the messages of one field, or what is said of each item, empty for nothing."""
    if isinstance(details, drf_errors.ErrorDetail):
        yield path, details
        return
    named = isinstance(details, dict)
    for name, inner in details.items() if named else enumerate(details):
        message = not named and isinstance(inner, drf_errors.ErrorDetail)
        here = message or name == "non_field_errors"
        yield from _complaints(inner, path if here else (*path, str(name)))


def headers(error: errors.EventHubError) -> dict[str, str]:
    """The headers that belong to an error: Retry-After, WWW-Authenticate."""
    found: dict[str, str] = {}
    if error.retry_after_s is not None:
        found["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.Unauthenticated):
        refused = "" if type(error) is errors.Unauthenticated else ', error="invalid_token"'
        found["WWW-Authenticate"] = f'Bearer realm="eventhub"{refused}'
    return found


def problem_response(error: errors.EventHubError) -> JsonResponse:
    """An error as Django's own response, where DRF is not in play."""
    return JsonResponse(
        error.problem(), status=error.status, content_type=CONTENT_TYPE, headers=headers(error)
    )


def problem(request: HttpRequest, exception: BaseException | None = None) -> JsonResponse:
    """Django's handlers of 400, 403, 404 and 500, the last of which is called without the exception
    that is being handled: also for what middleware raises, such as the session's database away.
    """
    error = exception or sys.exc_info()[1]
    return problem_response(as_error(error) if error else errors.EventHubError())


def only_read(view: Callable[..., HttpResponse]) -> Any:
    """A page of Django's: another method is a problem like everywhere, not its page about CSRF."""

    @csrf_exempt
    @functools.wraps(view)
    def checked(request: HttpRequest, *args: str, **more: str) -> HttpResponse:
        if request.method in ("GET", "HEAD"):
            return view(request, *args, **more)
        response = problem_response(errors.MethodNotAllowed())
        response["Allow"] = "GET, HEAD"
        return response

    return checked
