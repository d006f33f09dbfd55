"""Documents an operation for OpenAPI: summary, body, answers, and each error it can end with."""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from eventhub import errors, limits

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

ZONE = OpenApiParameter(
    "zone", str, description="Operators only: the zone to act in, `default` if not given."
)
PAGE = (
    OpenApiParameter("after", str, description="The `next` of the page before."),
    OpenApiParameter(
        "limit", int, description=f"Items per page, 1 to {limits.PAGE_ITEMS_MAX}.", required=False
    ),
)


CHANGE = (
    ZONE,
    OpenApiParameter(
        "If-Match",
        str,
        OpenApiParameter.HEADER,
        description="A sequence of `system`, as an ETag or any reply gave it: 412 `changed` if the"
        " resource changed after it, or is not there.",
    ),
)
PUT = (
    *CHANGE,
    OpenApiParameter(
        "If-None-Match", str, OpenApiParameter.HEADER, description="`*`: only if it is not there."
    ),
)


class ProblemSerializer(serializers.Serializer):
    """RFC 9457: what went wrong, as a code, a text, and a position in the input."""

    type = serializers.CharField(help_text="Where the error is explained.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField(help_text="Stable, for programs.")
    detail = serializers.CharField(help_text="What to do, for people.")
    position = serializers.DictField(help_text="`index` and `field`, as known.")


class Operation(NamedTuple):
    """What an operation takes, answers with and raises, beside what all do."""

    summary: str
    answers: dict[Any, Any]  # by status, or by status and media type
    raises: tuple[type[errors.EventHubError], ...] = ()
    body: Any = None
    parameters: tuple[OpenApiParameter, ...] = (ZONE,)
    open: bool = False  # needs no credentials


def documented(operation: Operation) -> Callable[[Any], Any]:
    """extend_schema for a view's method."""
    raised = [*operation.raises, *_ALWAYS]
    raised += () if operation.open else _CALLER
    raised += () if operation.body is None else _BODY_ERRORS
    raised += (errors.NotFound,) if ZONE in operation.parameters else ()
    if not operation.open and (operation.body is not None or 204 in operation.answers):
        raised.append(errors.CsrfFailed)
    found = {
        status: answer if answer is not None else OpenApiResponse(description="Done.")
        for status, answer in operation.answers.items()
    }
    return extend_schema(
        operation_id=re.sub(
            r"\W+", "_", operation.summary.partition(";")[0].replace("'", "").lower()
        ),
        summary=operation.summary,
        request=operation.body,
        responses={**found, **_problems(raised)},
        parameters=list(operation.parameters),
        auth=[] if operation.open else None,
    )


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


def page_of(item: type[serializers.BaseSerializer]) -> type[serializers.Serializer]:
    """The serializer of a page of items: {items, next}."""
    name = item.__name__.removesuffix("Serializer")
    fields = {
        "items": item(many=True),
        "next": serializers.CharField(
            allow_null=True, help_text="Pass as `after` for the next page; null at the end."
        ),
    }
    found: type[serializers.Serializer] = type(
        f"{name}PageSerializer", (serializers.Serializer,), fields
    )
    return found
