"""Documents an operation for OpenAPI: summary, body, answers, and each error it can end with.
Django module.
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

from eventhub.api.conditions import IF_MATCH
from eventhub.base import errors
from eventhub.event.json_types import schema_of
from eventhub.eventlog.errors import Changed

_BODY_ERRORS = (
    errors.MalformedJson,
    errors.InvalidUtf8,
    errors.TooDeep,
    errors.NumberOutOfRange,
    errors.InvalidField,
    errors.UnknownField,
    errors.BodyTooLarge,
    errors.UnsupportedMediaType,
    errors.RequestTimeout,
)
_ALWAYS = (
    errors.BadRequest,
    errors.HeadersTooLarge,
    errors.DatabaseUnavailable,
    errors.UnknownField,
)
_CALLER = (errors.Unauthenticated, errors.InvalidCredentials, errors.Forbidden)
# How a caller may be known, as permissions name it.
SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, `ehk_…`."},
    "operatorLogin": {
        "type": "apiKey",
        "in": "cookie",
        "name": settings.SESSION_COOKIE_NAME,
        "description": "POST /v1/session; writes also need X-CSRFToken.",
    },
}


class PositionSerializer(serializers.Serializer):
    """Where in the input, as known."""

    index = serializers.IntegerField(required=False, help_text="In a list, from 0 on.")
    field = serializers.CharField(required=False, help_text="A path with dots.")


class ProblemSerializer(serializers.Serializer):
    """RFC 9457: what went wrong, as a code, a text, and a position in the input."""

    type = serializers.CharField(help_text="Where the error is explained.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField(help_text="Stable, for programs.")
    detail = serializers.CharField(help_text="What to do, for people.")
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
    """An operation by what its view is made of: serializers, filters, pages, permissions, the
    parameters of its path, and whether its changes take conditions.
    """

    @property
    def schemes(self) -> set[str]:
        """How a caller may be known; none: anybody may call."""
        return {name for one in self.view.get_permissions() for name in one.schemes}

    def get_summary(self) -> str:
        return str(self.view.said.summary)

    def get_operation_id(self) -> str:
        return re.sub(
            r"\W+", "_", self.view.said.summary.partition(";")[0].replace("'", "").lower()
        )

    def get_description(self) -> str:
        permissions = self.view.get_permissions() if self.schemes else ()
        said = (inspect.getdoc(one) or "" for one in (self.view, *permissions))
        return " ".join(" ".join(said).split())

    def get_auth(self) -> list[dict[str, list[str]]]:
        return [{name: []} for name in SCHEMES if name in self.schemes]

    def get_override_parameters(self) -> list[Any]:
        return [one for one in self.view.parameters() if self.schemes or one.name != "zone"]

    def get_request_serializer(self) -> Any:
        return self.view.said.body

    def get_response_serializers(self) -> dict[Any, Any]:
        said = self.view.said
        answer = said.answer or self.view.get_serializer_class()
        if said.status:
            answers = {said.status: answer}
        elif isinstance(answer, dict):
            answers = answer
        elif self.method == "DELETE":
            answers = {204: OpenApiResponse(description="Done.")}
        elif self.view.action == "create":
            answers = {201: answer}
        else:
            answers = {200: answer}
            if self.method == "PUT" and self.view.kind:
                answers[201] = answer
        typed = {status: self._typed(one) for status, one in answers.items()}
        return {**typed, **_problems(self._raised())}

    def _typed(self, answer: Any) -> Any:
        """The schema of a TypedDict; anything else as it is."""
        if not is_typeddict(answer):
            return answer
        schema, components = schema_of(answer)
        for name, found in components.items():
            self.registry.register_on_missing(
                ResolvedComponent(name, ResolvedComponent.SCHEMA, found, object=name)
            )
        return schema

    def _raised(self) -> Iterator[Any]:
        yield from self.view.said.raises
        yield from _ALWAYS
        names = uritemplate.variables(self.path)
        if self.schemes:
            yield from (*_CALLER, errors.NotFound, errors.InvalidName, errors.FieldTooLong)
        if names and self.view.lookup_url_kwarg in (None, *names):
            yield getattr(self.view.unknown, "func", self.view.unknown)  # it may bring its message
        if self.view.action == "list" and self.view.pagination_class.parameters:
            yield errors.InvalidField
        if self.view.said.body is not None:
            yield from (*_BODY_ERRORS, *_of_fields(self.view.said.body))
            if self.method != "PATCH":
                yield errors.MissingField
        if any(one.name == IF_MATCH.name for one in self.view.parameters()):
            yield Changed
        if self.schemes and self.method != "GET":
            yield errors.CsrfFailed

    def _get_serializer_field_meta(self, field: Any, direction: str) -> dict[str, Any]:
        """Bodies and answers have serializers of their own, so nothing is only for one of them; and
        what is not given in a PATCH stays.
        """
        found: dict[str, Any] = super()._get_serializer_field_meta(field, direction)
        found.pop("readOnly", None)
        if getattr(field.root, "partial", False):
            found.pop("default", None)
        return found

    def get_paginated_name(self, serializer_name: str) -> str:
        return f"{serializer_name}Page"


def _of_fields(body: Any) -> Iterator[type[errors.EventHubError]]:
    """What the fields of a body are refused with."""
    yield from (errors.FieldTooLong, errors.InvalidName)
    fields = getattr(body(), "fields", {}) if isinstance(body, type) else {}
    for field in fields.values():
        yield from getattr(field, "raises", ())
