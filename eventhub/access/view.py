"""A view that reads its request strictly, and answers with its place in `system`."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from eventhub import limits
from eventhub.access import conditions, selectors
from eventhub.access.actor import Actor
from eventhub.access.authentication import KeyAuthentication, OperatorAuthentication
from eventhub.access.filters import StrictFilters
from eventhub.access.names import valid_name
from eventhub.access.pagination import CursorPagination
from eventhub.access.parsers import shown
from eventhub.access.permissions import IsKnown
from eventhub.access.principal import Principal
from eventhub.access.replies import Reply, action_id, one_snapshot, replying
from eventhub.access.schema import AutoSchema
from eventhub.access.system import raw_connection
from eventhub.errors import (
    EventHubError,
    NotFound,
    Unauthenticated,
    UnknownField,
    UnsupportedMediaType,
)
from eventhub.eventlog.changes import position
from eventhub.eventlog.stored import Cursor

_WITH_BODY = ("PATCH", "POST", "PUT")
_NUMBER = re.compile(r"[0-9]{1,18}")


class AlwaysJson(BaseContentNegotiation):
    """Answers are JSON whatever Accept says, so that an error is never a 406 in disguise."""

    def select_parser(self, request: Request, parsers: Sequence[Any]) -> Any:
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(
        self, request: Request, renderers: Sequence[Any], format_suffix: str | None = None
    ) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


class StrictView(GenericViewSet):
    """A request is read strictly, and answered with its place in `system`."""

    authentication_classes = (KeyAuthentication, OperatorAuthentication)
    permission_classes: Sequence[Any] = (IsKnown,)
    pagination_class = CursorPagination
    filter_backends = (StrictFilters,)
    content_negotiation_class = AlwaysJson
    schema = AutoSchema()
    metadata_class = None  # OPTIONS is answered by the CORS layer or not at all
    queries: frozenset[str] = frozenset()  # query parameters beside those of pages and filters
    conditional: Any = False  # its changes take conditions
    kind = ""
    _closing: ExitStack
    _reply: Reply | None = None

    @property
    def allowed_methods(self) -> list[str]:
        return [method for method in super().allowed_methods if method != "OPTIONS"]

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        _measure_chunked(request)
        found: Request = super().initialize_request(request, *args, **kwargs)
        return found

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with ExitStack() as self._closing:
            found: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return found

    def check_permissions(self, request: Request) -> None:
        """Strangers are told nothing, not even a number; then what is sent, then who may."""
        if request.user is None and any(each.known for each in self.get_permissions()):
            raise Unauthenticated
        if request.user is not None:
            self._begin(request)
        conditions.refuse_conditions(request, kept=self.conditional)
        encoding = request.headers.get("Content-Encoding", "").strip().lower()
        if request.method in _WITH_BODY and encoding not in ("", "identity"):
            raise UnsupportedMediaType("The body must not be compressed; send it as it is.")
        known = {"zone"} | self._known_queries()
        for name in request.query_params:
            if name not in known:
                raise UnknownField("This query parameter is not known here.", field=shown(name))
        if self.action is not None:  # else the method is refused
            super().check_permissions(request)

    def _known_queries(self) -> frozenset[str]:
        if self.action != "list":
            return self.queries
        paged = getattr(self.pagination_class, "queries", ())
        filters = getattr(self, "filterset_class", None)
        return self.queries.union(paged, filters.base_filters if filters else ())

    def _begin(self, request: Request) -> None:
        """What is only read is read at one moment (EMC-09); what is done has an id (EMC-10)."""
        reads = request.method in ("GET", "HEAD")
        action = "" if reads else action_id(request.headers.get("EventHub-Action"))
        self._reply = self._closing.enter_context(replying(action))
        if reads:
            self._closing.enter_context(one_snapshot())
        self._reply.place = position(raw_connection())

    def stands_at(self, place: Cursor | None) -> None:
        """The reply is about a stream's events: what it can know of ends there, not in `system`."""
        if self._reply is not None:
            self._reply.place = place

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        found: Response = super().finalize_response(request, response, *args, **kwargs)
        patch_vary_headers(found, ("Authorization", "Cookie"))
        if self._reply is not None:
            done = found.status_code < 400
            for name, value in self._reply.headers(done=done).items():
                found[name] = value
        return found


def _measure_chunked(request: HttpRequest) -> None:
    """DRF takes a request without Content-Length for one without a body; a chunked one has its
    length only here.
    """
    if "HTTP_TRANSFER_ENCODING" not in request.META or request.META.get("CONTENT_LENGTH"):
        return
    body = request.read(limits.MANAGE_BODY_BYTES_MAX + 1)
    request.META["CONTENT_LENGTH"] = str(len(body))
    request._body = body


def actor_of(request: Request) -> Actor:
    """The key in its own zone, or the operator in the zone of `?zone=` (default `default`); 404 for
    another zone.
    """
    asked = request.query_params.get("zone")
    if asked is not None:
        valid_name(asked, field="zone")
    principal = request.auth
    if isinstance(principal, Principal):
        if asked not in (None, principal.zone):
            raise NotFound("There is no such zone.", field="zone")
        return Actor(principal.zone_id, principal.zone, principal)
    zone = selectors.find_zone(name=asked or "default")
    return Actor(zone.pk, zone.name, None)


def number_of(text: str, *, otherwise: EventHubError) -> int:
    """The number in a path, or the error if it is none."""
    if not _NUMBER.fullmatch(text):
        raise otherwise
    return int(text)
