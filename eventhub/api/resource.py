"""The base class of the management API's views. Django module. A view parses its request strictly
and answers with its position in `system`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import django.db
import psycopg
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.cache import patch_vary_headers
from drf_spectacular.utils import OpenApiParameter
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from eventhub.access import roles, selectors
from eventhub.access.names import valid_name
from eventhub.access.principal import Actor
from eventhub.access.sessions import FIND_SESSION, HEADER, SessionRow, session_name, session_of
from eventhub.api.announcements import raw_connection
from eventhub.api.filters import FilterSet
from eventhub.api.if_match import (
    CONDITIONS,
    condition_of,
    refuse_conditions,
    tagged,
    with_changes,
)
from eventhub.api.pagination import NUMBER, CursorPagination
from eventhub.api.replies import Reply, action_id, current, one_snapshot, replying
from eventhub.base import caller, limits, traced_call
from eventhub.base.errors import (
    BadRequest,
    EventHubError,
    InvalidField,
    NotFound,
    Unauthenticated,
    UnknownField,
    UnsupportedMediaType,
)
from eventhub.base.strict_json import printable
from eventhub.eventlog.resource_changes import Resource, position
from eventhub.postgresql.rows import cursor_of

_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_WITH_BODY = ("PATCH", "POST", "PUT")


class AlwaysJson(BaseContentNegotiation):
    """Content negotiation that ignores Accept: responses are JSON, so no error becomes a 406."""

    def select_parser(self, request: Request, parsers: Sequence[Any]) -> Any:
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(
        self, request: Request, renderers: Sequence[Any], format_suffix: str | None = None
    ) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


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


def _route(request: HttpRequest) -> str:
    """Return the route of a request, as in the OpenAPI document."""
    match = request.resolver_match
    return "" if match is None else "/" + _PARAMETER.sub(r"{\1}", match.route)


def parse_number(text: str, *, error: EventHubError) -> int:
    """Return the number in a path. Raises `error` if it is none."""
    if not NUMBER.fullmatch(text):
        raise error
    return int(text)


F = TypeVar("F", bound=Callable[..., Any])
LIST = {"get": "list"}
LIST_AND_CREATE = {"get": "list", "post": "create"}
ONE = {"get": "retrieve"}
DELETE = {"delete": "destroy"}
CHANGE_AND_DELETE = {**ONE, "patch": "partial_update", "delete": "destroy"}
PUT = {**ONE, "put": "update"}
ZONE = OpenApiParameter(
    "zone", str, description="Operators only: the zone to act in, `default` if omitted."
)
_DESCRIBED_BY = {"list": ("list", "get_queryset"), "retrieve": ("retrieve", "get_object")}
_NAMES = ("channel", "client", "stream")  # path parameters that are names


class OperationSpec(NamedTuple):
    """The body, response, errors and parameters of an action, where they differ from its view's."""

    summary: str
    body: Any = None
    response: Any = None
    raises: tuple[type[EventHubError], ...] = ()
    status: int | None = None
    parameters: tuple[Any, ...] = ()
    permissions: tuple[Any, ...] = ()
    role: str = ""  # that an operator needs; by default as its permissions say, or by the method


def operation(
    summary: str, *raises: type[EventHubError], body: Any = None, response: Any = None, **more: Any
) -> Callable[[F], F]:
    """Describe an action, or its `perform_…`, where its view does not. `raises`: its own errors.
    The OpenAPI document and the serializers of the body and the response use it.
    """
    found = OperationSpec(summary, body, response, raises, **more)

    def decorated(function: F) -> F:
        function.operation = found  # type: ignore[attr-defined]
        return function

    return decorated


class ResourceView(GenericViewSet):
    """The actions of a resource. A view provides its items (a queryset, or `get_object`), its
    changes (`perform_…`), and, if they take conditions, its `kind` in `resource_changes`.
    """

    http_method_names = ("get", "post", "put", "patch", "delete", "head")  # CORS answers OPTIONS
    content_negotiation_class = AlwaysJson
    noun: ClassVar[tuple[str, str]] = ("", "")  # "a client", "clients"
    kind = ""
    unknown: Callable[..., EventHubError] = NotFound
    pagination_class = CursorPagination
    filterset_class = FilterSet
    ordering: tuple[str, ...] = ("pk",)
    listed: tuple[str, ...] = ()  # columns of a list, where rows suffice: half the time of models
    cursor: tuple[str, ...] = ()  # fields of a page's `next`, if they are not those of `ordering`
    _closing: ExitStack

    # --- requests and replies ---

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        _measure_chunked(request)
        traced_call.note_route(_route(request))
        with caller.acting(caller.current()), ExitStack() as self._closing:
            return super().dispatch(request, *args, **kwargs)

    def check_permissions(self, request: Request) -> None:
        """Check authentication before the request: a stranger learns nothing of the hub."""
        if request.user is not None:
            self._begin(request)
            self._enter_session(request)
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
            if request.user is not None and request.auth is None:
                roles.require(request.user.role, self.role)
            super().check_permissions(request)

    def _begin(self, request: Request) -> None:
        """Open the reply: a read has one snapshot (EMC-09), a change has an action id (EMC-10)."""
        reads = request.method in ("GET", "HEAD")
        if reads:
            self._closing.enter_context(one_snapshot())
        reply = self.open_reply()
        if not reads:
            reply.action = action_id(request.headers.get("EventHub-Action"))

    def _enter_session(self, request: Request) -> None:
        """Act through the session that the request names. Raises UnknownSession, and InvalidField
        for an operator.
        """
        name = request.headers.get(HEADER)
        if name is None:
            return
        if request.auth is None:
            raise InvalidField("An operator has no sessions; omit the header.", field=HEADER)
        values = (request.auth.client_id, session_name(name))
        query = cursor_of(raw_connection(), SessionRow)
        found = session_of(query.execute(FIND_SESSION, values).fetchone())
        request.auth = request.user = request.auth._replace(session=found)
        request.auth.identify()

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

    @cached_property
    def actor(self) -> Actor:
        """The actor: a key in its own zone, or an operator in the zone of `?zone=`. Raises NotFound
        for another zone, and InvalidName for a name in the path that is none.
        """
        zone = self.request.query_params.get("zone")
        if zone is not None:
            valid_name(zone, field="zone")
        actor = selectors.actor_of(self.request.auth, zone=zone)
        traced_call.note_caller(caller.current(), actor.zone_id)
        for name in _NAMES:
            if name in self.kwargs:
                valid_name(self.kwargs[name], field=name)
        return actor

    @property
    def key(self) -> Any:
        """The key of the item in the path; a number where the lookup is by `pk`."""
        text = self.kwargs[self.lookup_url_kwarg]
        if self.lookup_field != "pk":
            return text
        return parse_number(text, error=self.not_found())

    @property
    def if_match(self) -> int | None:
        """The sequence after which the resource must not have changed; 0: it must not exist; None:
        no condition.
        """
        return condition_of(self.request)

    @cached_property
    def filterset(self) -> FilterSet:
        return self.filterset_class(self.request.query_params, self.queryset, request=self.request)

    @property
    def filter_values(self) -> dict[str, Any]:
        """The parsed values of the filters; None: not given."""
        return self.filterset.filter_values

    # --- description ---

    @property
    def operation(self) -> OperationSpec:
        """The description of the current action; by the noun, for lists and single items."""
        action = self.action or ""  # empty: the method is refused
        for name in _DESCRIBED_BY.get(action, (f"perform_{action}", action)):
            found: OperationSpec | None = getattr(
                getattr(type(self), name, None), "operation", None
            )
            if found is not None:
                return found
        one, many = self.noun
        return OperationSpec(f"List {many}" if action == "list" else f"Show {one}")

    def parameters(self) -> Sequence[OpenApiParameter]:
        """Return the query parameters and conditions that a request may have."""
        found = [ZONE]
        if self.kind:
            found += CONDITIONS.get(self.request.method, ())
        if self.action == "list":
            found += [*self.pagination_class.parameters, *self.filterset_class.parameters()]
        return [*found, *self.operation.parameters]

    def get_permissions(self) -> Any:
        return [one() for one in self.operation.permissions or self.permission_classes]

    @property
    def role(self) -> str:
        """The role that an operator needs for the current action."""
        named = (self.operation.role, *(one.role for one in self.get_permissions()))
        return roles.needed(self.request.method, next(filter(None, named), ""))

    def not_found(self) -> EventHubError:
        return self.unknown(field=self.lookup_url_kwarg)

    def name_of(self, item: Any) -> str:
        """Return the name of an item in `resource_changes`."""
        return str(getattr(item, self.lookup_field))

    @property
    def changes_zone_id(self) -> int:
        """The zone of the resources in `resource_changes`."""
        return self.actor.zone_id

    def resource(self, item: Any) -> Resource:
        return Resource(self.kind, self.changes_zone_id, self.name_of(item))

    # --- actions ---

    def list(self, request: Request, **kwargs: Any) -> Response:
        queryset = self.filter_queryset(self.get_queryset())
        if self.listed and isinstance(queryset, QuerySet):
            queryset = queryset.values_list(*self.listed, named=True)
        items = self.paginate_queryset(queryset)
        return self.get_paginated_response(self.represent_items(items))

    def filter_queryset(self, queryset: Any) -> Any:
        """Filter a queryset; a `Listing` filters in its own statement."""
        if not isinstance(queryset, QuerySet):
            return queryset
        return self.filterset.filter_queryset(queryset)

    def get_object(self) -> Any:
        found = self.get_queryset().filter(**{self.lookup_field: self.key}).first()
        if found is None:
            raise self.not_found()
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

    # --- shared by the actions ---

    def body(self) -> dict[str, Any]:
        """Return the validated body; a missing body is an empty object."""
        partial = self.request.method == "PATCH"
        found = self.operation.body(data=self.request.data, partial=partial, context={"view": self})
        found.is_valid(raise_exception=True)
        return dict(found.validated_data)

    def represent_items(
        self, items: Iterable[Any], serializer: Any = None
    ) -> Sequence[dict[str, Any]]:
        """Return the JSON of list items, each with the sequence of its last change."""
        items = [*items]
        serializer = serializer or self.get_serializer_class()
        found = [serializer.represent(item) for item in items]
        if not self.kind:
            return found
        names = [*map(self.name_of, items)]
        return with_changes(found, self.kind, self.changes_zone_id, names)

    def answer(self, item: Any, status: int = 200, serializer: Any = None) -> Response:
        """Return the response about one item, with its ETag if any. A secret is not cached."""
        serializer = serializer or self.operation.response or self.get_serializer_class()
        body, status = serializer.represent(item), self.operation.status or status
        found = tagged(body, self.resource(item), status) if self.kind else Response(body, status)
        if getattr(serializer, "has_secret", False):
            found["Cache-Control"] = "no-store"
        return found
