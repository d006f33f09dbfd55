"""The base of every view of the management API: who acts in which zone, strict requests, and the
actions of a resource over a queryset or over functions.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

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
from eventhub.access.pagination import CursorPagination, Cut, Listing
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
from eventhub.eventlog.changes import Resource, position
from eventhub.eventlog.stored import Cursor

F = TypeVar("F", bound=Callable[..., Any])
LIST = {"get": "list"}
LIST_AND_CREATE = {"get": "list", "post": "create"}
ONE = {"get": "retrieve"}
CHANGE_AND_DELETE = {**ONE, "patch": "partial_update", "delete": "destroy"}
PUT = {**ONE, "put": "update"}
_SAID_OF = {"list": ("list", "get_queryset"), "retrieve": ("retrieve", "get_object")}
_WITH_BODY = ("PATCH", "POST", "PUT")
_NAMES = ("channel", "client", "stream")  # parameters of paths that are names
_NUMBER = re.compile(r"[0-9]{1,18}")


class Operation(NamedTuple):
    """What an action takes and answers with, as far as it is not its view's."""

    summary: str
    body: Any = None
    answer: Any = None
    raises: tuple[type[EventHubError], ...] = ()
    status: int | None = None
    parameters: tuple[Any, ...] = ()
    permissions: tuple[Any, ...] = ()


def operation(
    summary: str, *raises: type[EventHubError], body: Any = None, answer: Any = None, **more: Any
) -> Callable[[F], F]:
    """Say of an action, or of the `perform_…` behind it, what cannot be derived; `raises`: errors
    of its own. For the OpenAPI document, and for the serializers of its body and its answer.
    """
    found = Operation(summary, body, answer, raises, **more)

    def decorated(function: F) -> F:
        function.operation = found  # type: ignore[attr-defined]
        return function

    return decorated


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


class ResourceView(StrictView):
    """The actions of a resource. A view says where its items come from: a queryset, or
    `get_object`; what a change calls: `perform_…`; and of what kind it is in `resource_changes`, if
    its changes take conditions.
    """

    noun: ClassVar[tuple[str, str]] = ("", "")  # "a client", "clients"
    kind = ""
    unknown: Callable[..., EventHubError] = NotFound
    ordering: tuple[str, ...] = ("pk",)
    cursor: tuple[str, ...] = ()  # fields of a page's `next`, if they are not those

    @property
    def conditional(self) -> bool:
        return bool(self.kind)

    @cached_property
    def actor(self) -> Actor:
        """Who acts, in which zone. The names in the path are names, too."""
        actor = actor_of(self.request)
        for name in _NAMES:
            if name in self.kwargs:
                valid_name(self.kwargs[name], field=name)
        return actor

    @property
    def key(self) -> Any:
        """What the path names the one by: a number where the lookup is one."""
        text = self.kwargs[self.lookup_url_kwarg]
        if self.lookup_field != "pk":
            return text
        return number_of(text, otherwise=self.not_found())

    @classmethod
    def unknown_error(cls) -> type[EventHubError]:
        """The class of `unknown`, which may bring its message."""
        found: type[EventHubError] = getattr(cls.unknown, "func", cls.unknown)  # type: ignore[arg-type]
        return found

    def get_permissions(self) -> Any:
        allowed = self.operation_of(self.action).permissions if self.action else ()
        return [one() for one in allowed or self.permission_classes]

    def not_found(self) -> EventHubError:
        return self.unknown(field=self.lookup_url_kwarg)

    def get_object(self) -> Any:
        found = self.get_queryset().filter(**{self.lookup_field: self.key}).first()
        if found is None:
            raise self.not_found()
        return found

    def name_of(self, item: Any) -> str:
        """What names an item in `resource_changes`."""
        return str(getattr(item, self.lookup_field))

    @classmethod
    def operation_of(cls, action: str) -> Operation:
        """What is said of an action; of lists and single ones the noun is enough."""
        for name in _SAID_OF.get(action, (f"perform_{action}", action)):
            found: Operation | None = getattr(getattr(cls, name, None), "operation", None)
            if found is not None:
                return found
        one, many = cls.noun
        return Operation(f"List {many}" if action == "list" else f"Show {one}")

    # --- actions ---

    def list(self, request: Request, **kwargs: Any) -> Response:
        items = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.shown_items(items))

    def filter_queryset(self, queryset: Any) -> Any:
        """What SQL lists is filtered by its statement."""
        listed = isinstance(queryset, Listing | Cut)
        return queryset if listed else super().filter_queryset(queryset)

    @property
    def asked(self) -> dict[str, Any]:
        """The values of the filters; None: not given."""
        filterset = self.filterset_class(self.request.query_params, self.queryset)
        filterset.errors  # noqa: B018 (which reads them)
        found: dict[str, Any] = filterset.form.cleaned_data
        return found

    def retrieve(self, request: Request, **kwargs: Any) -> Response:
        return self.answer(self.get_object())

    def create(self, request: Request, **kwargs: Any) -> Response:
        return self.answer(self.perform_create(self.body()), 201)

    def partial_update(self, request: Request, **kwargs: Any) -> Response:
        return self.answer(self.perform_partial_update(self.body()))

    def update(self, request: Request, **kwargs: Any) -> Response:
        found, new = self.perform_update(self.body())
        return self.answer(found, 201 if new else 200)

    def destroy(self, request: Request, **kwargs: Any) -> Response:
        self.perform_destroy()
        return Response(status=204)

    # --- what they share ---

    def body(self) -> dict[str, Any]:
        """The validated body; a missing body is an empty object."""
        serializer = self.operation_of(self.action).body
        partial = self.request.method == "PATCH"
        found = serializer(data=self.request.data, partial=partial, context={"view": self})
        found.is_valid(raise_exception=True)
        return dict(found.validated_data)

    @property
    def if_match(self) -> int | None:
        """The sequence after which the resource must not have changed; None: no condition. Of PUT
        0, if there must be none.
        """
        if self.request.method == "PUT":
            return conditions.condition_of_put(self.request)
        return conditions.if_match(self.request)

    def resource(self, item: Any) -> Resource:
        return Resource(self.kind, self.actor.zone_id, self.name_of(item))

    def shown_items(self, items: Iterable[Any], serializer: Any = None) -> Sequence[dict[str, Any]]:
        """The items of a list, with when each has changed last."""
        items = [*items]
        serializer = serializer or self.get_serializer_class()
        found = [serializer.represent(item) for item in items]
        if not self.kind:
            return found
        names = map(self.name_of, items)
        return conditions.with_changes(found, self.kind, self.actor.zone_id, names)

    def answer(self, item: Any, status: int = 200, serializer: Any = None) -> Response:
        """One item, with its ETag if it has one. What is shown once is not stored on the way."""
        said = self.operation_of(self.action)
        serializer = serializer or said.answer or self.get_serializer_class()
        body = serializer.represent(item)
        status = said.status or status
        if self.kind:
            found = conditions.tagged(body, self.resource(item), status)
        else:
            found = Response(body, status)
        if getattr(serializer, "shown_once", False):
            found["Cache-Control"] = "no-store"
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
