"""A view that parses its request strictly and answers with its position in `system`.
Django module.
"""

import re
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any

import django.db
import psycopg
from django.http import HttpRequest
from django.utils.cache import patch_vary_headers
from drf_spectacular.utils import OpenApiParameter
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from eventhub.api.announcements import raw_connection
from eventhub.api.conditions import refuse_conditions
from eventhub.api.replies import Reply, action_id, current, one_snapshot, replying
from eventhub.base import limits
from eventhub.base.errors import (
    BadRequest,
    EventHubError,
    Unauthenticated,
    UnknownField,
    UnsupportedMediaType,
)
from eventhub.base.strict_json import printable
from eventhub.eventlog.resource_changes import position

_WITH_BODY = ("PATCH", "POST", "PUT")
_NUMBER = re.compile(r"[0-9]{1,18}")


class AlwaysJson(BaseContentNegotiation):
    """Content negotiation that ignores Accept: responses are JSON, so no error becomes a 406."""

    def select_parser(self, request: Request, parsers: Sequence[Any]) -> Any:
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(
        self, request: Request, renderers: Sequence[Any], format_suffix: str | None = None
    ) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


class StrictView(GenericViewSet):
    """A view that parses its request strictly and answers with its position in `system`."""

    http_method_names = ("get", "post", "put", "patch", "delete", "head")  # CORS answers OPTIONS
    content_negotiation_class = AlwaysJson
    _closing: ExitStack

    def parameters(self) -> Sequence[OpenApiParameter]:
        """Return the query parameters and conditions that a request may have."""
        raise NotImplementedError

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        _measure_chunked(request)
        with ExitStack() as self._closing:
            return super().dispatch(request, *args, **kwargs)

    def check_permissions(self, request: Request) -> None:
        """Check authentication first, then the request, then permissions: a caller without
        credentials learns nothing of the hub.
        """
        if request.user is not None:
            self._begin(request)
        elif any(each.schemes for each in self.get_permissions()):
            raise Unauthenticated
        known = {(one.location, one.name) for one in self.parameters()}
        refuse_conditions(request, known)
        encoding = request.headers.get("Content-Encoding", "").strip().lower()
        if request.method in _WITH_BODY and encoding not in ("", "identity"):
            raise UnsupportedMediaType("The body must not be compressed; send it as it is.")
        for name, texts in request.query_params.lists():
            if (OpenApiParameter.QUERY, name) not in known:
                raise UnknownField(
                    "This operation has no such query parameter.", field=printable(name)
                )
            if len(texts) > 1:
                raise BadRequest("Give this query parameter once.", field=name)
        if self.action is not None:  # else the method is not allowed
            super().check_permissions(request)

    def _begin(self, request: Request) -> None:
        """Open the reply: a read has one snapshot (EMC-09), a change has an action id (EMC-10)."""
        reads = request.method in ("GET", "HEAD")
        if reads:
            self._closing.enter_context(one_snapshot())
        reply = self.open_reply()
        if not reads:
            reply.action = action_id(request.headers.get("EventHub-Action"))

    def open_reply(self) -> Reply:
        """Open the reply to a caller that is known now, at the present position of `system`."""
        reply = self._closing.enter_context(replying())
        reply.position = position(raw_connection())
        return reply

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Any:
        found = super().finalize_response(request, response, *args, **kwargs)
        patch_vary_headers(found, ("Authorization", "Cookie"))
        if reply := current():
            done = found.status_code < 400
            if not done and reply.action:
                _renew_position(reply)
            for name, value in reply.headers(done=done).items():
                found[name] = value
        return found


def _renew_position(reply: Reply) -> None:
    """Set the position of a refused change to the present one: the change that refused it may be
    newer than the request (`changed`, `conflict`).
    """
    if reply.position is not None:
        with suppress(EventHubError, django.db.Error, psycopg.Error):
            reply.position = position(raw_connection(), reply.stream_id)


def _measure_chunked(request: HttpRequest) -> None:
    """Set the length of a chunked body: DRF takes a request without Content-Length for one without
    a body.
    """
    if "HTTP_TRANSFER_ENCODING" not in request.META or request.META.get("CONTENT_LENGTH"):
        return
    body = request.read(limits.MANAGE_BODY_BYTES_MAX + 1)
    request.META["CONTENT_LENGTH"] = str(len(body))
    request._body = body


def parse_number(text: str, *, error: EventHubError) -> int:
    """Return the number in a path. Raises `error` if it is none."""
    if not _NUMBER.fullmatch(text):
        raise error
    return int(text)
