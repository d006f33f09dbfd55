"""The OpenAPI description of an operation: summary, body, responses, and every error that it
raises. Django module.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, is_typeddict

import uritemplate
from django.conf import settings
from drf_spectacular import openapi
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

from eventhub.access.roles import ADMIN
from eventhub.access.sessions import UnknownSession, WrongSessionKind
from eventhub.api.if_match import IF_MATCH
from eventhub.base import errors
from eventhub.event.json_types import schema_of
from eventhub.eventlog.errors import Changed

_BODY_ERRORS = (
    *(errors.MalformedJson, errors.InvalidUtf8, errors.TooDeep, errors.NumberOutOfRange),
    *(errors.InvalidField, errors.UnknownField, errors.BodyTooLarge),
    *(errors.UnsupportedMediaType, errors.RequestTimeout),
)
_ALWAYS = (
    *(errors.BadRequest, errors.HeadersTooLarge),
    *(errors.DatabaseUnavailable, errors.UnknownField),
)
_CALLER = (errors.Unauthenticated, errors.InvalidCredentials, errors.Forbidden)
# The authentication schemes, by the names that permissions use.
SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, `ehk_…`."},
    "operatorLogin": {
        "type": "apiKey",
        "in": "cookie",
        "name": settings.SESSION_COOKIE_NAME,
        "description": "Log in with POST /v1/session; writes also need X-CSRFToken.",
    },
}


class PositionSerializer(serializers.Serializer):
    """A position in the input, where known."""

    index = serializers.IntegerField(required=False, help_text="The index in a list, from 0.")
    field = serializers.CharField(required=False, help_text="The path of the field, with dots.")


class ProblemSerializer(serializers.Serializer):
    """An error by RFC 9457: a code, a text, and a position in the input."""

    type = serializers.CharField(help_text="The page that explains the error.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField(help_text="The stable name of the error, for programs.")
    detail = serializers.CharField(help_text="What is wrong and what to do, for people.")
    position = PositionSerializer()


def _problems(raised: Iterable[type[errors.EventHubError]]) -> dict[Any, OpenApiResponse]:
    by_status: dict[int, list[str]] = {}
    for error in dict.fromkeys(raised):
        by_status.setdefault(error.status, []).append(
            f"[`{error.code}`](/docs/errors#{error.code})"
        )
    return {
        (status, "application/problem+json"): OpenApiResponse(
            ProblemSerializer, description=", ".join(codes)
        )
        for status, codes in sorted(by_status.items())
    }


class AutoSchema(openapi.AutoSchema):
    """An operation derived from its view: serializers, filters, pagination, permissions, parameters
    of the path and conditions.
    """

    @property
    def schemes(self) -> set[str]:
        """The authentication schemes; empty: no credentials are needed."""
        return {name for one in self.view.get_permissions() for name in one.schemes}

    def get_summary(self) -> str:
        return str(self.view.operation.summary)

    def get_operation_id(self) -> str:
        return re.sub(
            r"\W+", "_", self.view.operation.summary.partition(";")[0].replace("'", "").lower()
        )

    def get_description(self) -> str:
        permissions = self.view.get_permissions() if self.schemes else ()
        texts = [inspect.getdoc(one) or "" for one in (self.view, *permissions)]
        if self.view.operation.role == ADMIN:
            texts.append("An operator needs the role admin.")
        return " ".join(" ".join(texts).split())

    def get_auth(self) -> list[dict[str, list[str]]]:
        return [{name: []} for name in SCHEMES if name in self.schemes]

    def get_override_parameters(self) -> list[Any]:
        return [one for one in self.view.parameters() if self.schemes or one.name != "zone"]

    def get_request_serializer(self) -> Any:
        return self.view.operation.body

    def get_response_serializers(self) -> dict[Any, Any]:
        operation = self.view.operation
        response = operation.response or self.view.get_serializer_class()
        if operation.status:
            responses = {operation.status: response}
        elif isinstance(response, dict):
            responses = response
        elif self.method == "DELETE":
            responses = {204: OpenApiResponse(description="Done.")}
        elif self.view.action == "create":
            responses = {201: response}
        else:
            responses = {200: response}
            if self.method == "PUT" and self.view.kind:
                responses[201] = response
        typed = {status: self._typed(one) for status, one in responses.items()}
        return {**typed, **_problems(self._raised())}

    def _typed(self, response: Any) -> Any:
        """Return the schema of a TypedDict; anything else unchanged."""
        if not is_typeddict(response):
            return response
        schema, components = schema_of(response)
        for name, found in components.items():
            self.registry.register_on_missing(
                ResolvedComponent(name, ResolvedComponent.SCHEMA, found, object=name)
            )
        return schema

    def _raised(self) -> Iterator[Any]:
        yield from self.view.operation.raises
        yield from _ALWAYS
        names = uritemplate.variables(self.path)
        if self.schemes:
            yield from (*_CALLER, errors.NotFound, errors.InvalidName, errors.FieldTooLong)
            yield errors.InvalidField  # of a condition that the operation has not, of a session
        if "bearer" in self.schemes:
            yield from (errors.AddressNotAllowed, UnknownSession, WrongSessionKind)
        if names and self.view.lookup_url_kwarg in (None, *names):
            yield getattr(
                self.view.unknown, "func", self.view.unknown
            )  # a partial brings its message
        if self.view.operation.body is not None:
            yield from (*_BODY_ERRORS, *_field_errors(self.view.operation.body))
            if self.method != "PATCH":
                yield errors.MissingField
        if any(one.name == IF_MATCH.name for one in self.view.parameters()):
            yield Changed
        if self.schemes and self.method != "GET":
            yield errors.CsrfFailed

    def _get_serializer_field_meta(self, field: Any, direction: str) -> dict[str, Any]:
        """Drop `readOnly`, because bodies and responses have serializers of their own; and defaults
        of a PATCH, which leaves omitted fields unchanged.
        """
        found: dict[str, Any] = super()._get_serializer_field_meta(field, direction)
        found.pop("readOnly", None)
        if getattr(field.root, "partial", False):
            found.pop("default", None)
        return found

    def get_paginated_name(self, serializer_name: str) -> str:
        return f"{serializer_name}Page"


def _field_errors(body: Any) -> Iterator[type[errors.EventHubError]]:
    """Yield the errors that the fields of a body raise."""
    yield from (errors.FieldTooLong, errors.InvalidName)
    fields = getattr(body(), "fields", {}) if isinstance(body, type) else {}
    for field in fields.values():
        yield from getattr(field, "raises", ())
