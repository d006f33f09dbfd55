"""The conversion of every exception of a view into `application/problem+json`: EventHub's errors,
DRF's, Django's and the database's. Django module.

No response contains a stack trace or HTML. An unexpected exception is logged and answered as
`internal`.
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

_UNAVAILABLE = (
    "The database is unavailable. A change may or may not have been stored: retry after Retry-After"
    " seconds; check first whether it was stored if a repeat is not idempotent."
)
_IDLE = psycopg.errors.IdleInTransactionSessionTimeout  # no OperationalError
# the first match wins, so subclasses come before their bases
_CONVERSIONS: dict[type[errors.EventHubError], tuple[type[BaseException], ...]] = {
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
    """Return the problem document of an error, with its headers; DRF's EXCEPTION_HANDLER."""
    found = as_error(error)
    return Response(
        found.problem(), found.status, headers=headers(found), content_type=CONTENT_TYPE
    )


def as_error(error: BaseException) -> errors.EventHubError:
    """Convert an exception to an EventHubError. An unexpected one is logged with its trace and
    becomes `internal`.
    """
    if isinstance(error, errors.EventHubError):
        return error
    if any(isinstance(one, psycopg.errors.DiskFull) for one in (error, error.__cause__)):
        return StorageFull(retry_after_s=1)
    if any(isinstance(one, _IDLE) for one in (error, error.__cause__)):
        return errors.DatabaseUnavailable(_UNAVAILABLE)  # this process came too late
    if isinstance(error, drf_errors.ValidationError):
        return validation_error(error)
    if isinstance(error, django_errors.DisallowedHost):
        return errors.BadRequest("The Host header is not one of EVENTHUB_ALLOWED_HOSTS.")
    ours = next((ours for ours, kinds in _CONVERSIONS.items() if isinstance(error, kinds)), None)
    if ours is errors.DatabaseUnavailable:
        _LOG.warning("database_unavailable", reason=str(error).strip())
        return ours(_UNAVAILABLE)  # the connection may have been lost during the commit
    if ours is not None:
        return ours()
    _LOG.error("unexpected_error", exc_info=error)
    return errors.EventHubError()


def validation_error(error: drf_errors.ValidationError) -> errors.EventHubError:
    """Return the first error of a serializer, with the dotted path of its field."""
    path, detail = next(_details(error.detail, ()))
    kind = _BY_VALIDATION_CODE.get(detail.code, errors.InvalidField)
    own = kind in (errors.InvalidField, errors.FieldTooLong)
    return kind(str(detail) if own else None, field=".".join(path) or None)


def _details(details: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield paths and messages. A list has the messages of a field, or the details of each item."""
    if isinstance(details, drf_errors.ErrorDetail):
        yield path, details
        return
    named = isinstance(details, dict)
    for name, inner in details.items() if named else enumerate(details):
        message = not named and isinstance(inner, drf_errors.ErrorDetail)
        here = message or name == "non_field_errors"
        yield from _details(inner, path if here else (*path, str(name)))


def headers(error: errors.EventHubError) -> dict[str, str]:
    """Return the headers of an error, as Django receives them."""
    return {name.decode(): value.decode() for name, value in error.headers}


def problem_response(error: errors.EventHubError) -> JsonResponse:
    """Return the problem document as a response of Django, for views without DRF."""
    return JsonResponse(
        error.problem(), status=error.status, content_type=CONTENT_TYPE, headers=headers(error)
    )


def problem(request: HttpRequest, exception: BaseException | None = None) -> JsonResponse:
    """Return the problem document of an exception; Django's handler of 400, 403, 404 and 500, also
    for exceptions of middleware. Django calls that of 500 without the exception.
    """
    error = exception or sys.exc_info()[1]
    return problem_response(as_error(error) if error else errors.EventHubError())


def read_only(view: Callable[..., HttpResponse]) -> Any:
    """Wrap a view of Django: methods other than GET and HEAD get a problem document with 405."""

    @csrf_exempt
    @functools.wraps(view)
    def checked(request: HttpRequest, *args: str, **more: str) -> HttpResponse:
        if request.method in ("GET", "HEAD"):
            return view(request, *args, **more)
        response = problem_response(errors.MethodNotAllowed())
        response["Allow"] = "GET, HEAD"
        return response

    return checked
