"""Exceptions of views are answered with the right error."""

import django.db
import psycopg
import psycopg_pool
import pytest
from django.core import exceptions as django_errors
from django.http import Http404
from rest_framework import exceptions as drf_errors

from eventhub.access.quotas import RateLimited
from eventhub.api.problems import as_error, exception_handler, headers
from eventhub.base import errors


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (errors.UnknownStream(), "unknown_stream", 404),
        (Http404("secret path"), "not_found", 404),
        (drf_errors.MethodNotAllowed("BREW"), "method_not_allowed", 405),
        (drf_errors.NotAuthenticated(), "unauthenticated", 401),
        (drf_errors.UnsupportedMediaType("x/y"), "unsupported_media_type", 415),
        (drf_errors.ParseError("x"), "malformed_json", 400),
        (drf_errors.Throttled(), "too_many_requests", 429),
        (drf_errors.PermissionDenied(), "forbidden", 403),
        (django_errors.PermissionDenied(), "forbidden", 403),
        (django_errors.SuspiciousOperation(), "bad_request", 400),
        (django_errors.RequestDataTooBig(), "body_too_large", 413),
        (django.db.OperationalError("gone"), "database_unavailable", 503),
        (django.db.InterfaceError("closed"), "database_unavailable", 503),
        (psycopg.OperationalError("gone"), "database_unavailable", 503),
        (psycopg_pool.PoolTimeout("no connection"), "database_unavailable", 503),
        (psycopg.errors.IdleInTransactionSessionTimeout("late"), "database_unavailable", 503),
        (django.db.InternalError("late"), "internal", 500),
        (psycopg.DataError("NUL"), "bad_request", 400),
        (RuntimeError("a secret"), "internal", 500),
    ],
)
def test_every_exception_is_one_of_our_errors(error: Exception, code: str, status: int) -> None:
    response = exception_handler(error, {})
    assert (response.data["code"], response.status_code) == (code, status)
    assert response.content_type == "application/problem+json"
    assert "secret" not in str(response.data)


def test_a_transaction_that_was_idle_too_long_is_no_fault_of_the_hub_within_django() -> None:
    error = django.db.InternalError("late")
    error.__cause__ = psycopg.errors.IdleInTransactionSessionTimeout("late")
    assert as_error(error).status == 503


def test_headers_belong_to_their_errors() -> None:
    assert headers(errors.DatabaseUnavailable()) == {"retry-after": "1"}
    assert headers(errors.Unauthenticated())["www-authenticate"] == 'Bearer realm="eventhub"'
    assert 'error="invalid_token"' in headers(errors.TokenExpired())["www-authenticate"]
    assert headers(errors.MethodNotAllowed(allow="GET"))["allow"] == "GET"
    assert headers(errors.UpgradeRequired())["upgrade"] == "websocket"
    limited = headers(RateLimited(scope="client", rate=5, wait_s=1.5))
    assert (limited["retry-after"], limited["ratelimit"]) == ("2", '"client";r=0;t=2')
    assert headers(errors.Forbidden()) == {}


@pytest.mark.parametrize(
    ("detail", "code", "field"),
    [
        ({"name": [drf_errors.ErrorDetail("x", "required")]}, "missing_field", "name"),
        ({"name": [drf_errors.ErrorDetail("x", "unknown_field")]}, "unknown_field", "name"),
        ({"name": [drf_errors.ErrorDetail("x", "max_length")]}, "field_too_long", "name"),
        ({"name": [drf_errors.ErrorDetail("x", "invalid_name")]}, "invalid_name", "name"),
        ({"a": [{}, {"b": [drf_errors.ErrorDetail("x", "invalid")]}]}, "invalid_field", "a.1.b"),
        ({"non_field_errors": [drf_errors.ErrorDetail("x", "invalid")]}, "invalid_field", None),
        ([drf_errors.ErrorDetail("x", "invalid")], "invalid_field", None),
    ],
)
def test_a_serializers_complaint_keeps_its_place(
    detail: object, code: str, field: str | None
) -> None:
    error = as_error(drf_errors.ValidationError(detail))
    assert (error.code, error.field) == (code, field)
