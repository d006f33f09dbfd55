"""The base of every view of the management API: who acts in which zone, and the actions of a
resource over a queryset or over functions. Django module.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.access import selectors
from eventhub.access.actor import Actor
from eventhub.access.names import valid_name
from eventhub.api import conditions
from eventhub.api.filters import FilterSet
from eventhub.api.pagination import CursorPagination
from eventhub.api.view import StrictView, number_of
from eventhub.base.errors import EventHubError, NotFound
from eventhub.eventlog.resource_changes import Resource

F = TypeVar("F", bound=Callable[..., Any])
LIST = {"get": "list"}
LIST_AND_CREATE = {"get": "list", "post": "create"}
ONE = {"get": "retrieve"}
CHANGE_AND_DELETE = {**ONE, "patch": "partial_update", "delete": "destroy"}
PUT = {**ONE, "put": "update"}
ZONE = OpenApiParameter(
    "zone", str, description="Operators only: the zone to act in, `default` if not given."
)
_SAID_OF = {"list": ("list", "get_queryset"), "retrieve": ("retrieve", "get_object")}
_NAMES = ("channel", "client", "stream")  # parameters of paths that are names


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


class ResourceView(StrictView):
    """The actions of a resource. A view says where its items come from: a queryset, or
    `get_object`; what a change calls: `perform_…`; and of what kind it is in `resource_changes`, if
    its changes take conditions.
    """

    noun: ClassVar[tuple[str, str]] = ("", "")  # "a client", "clients"
    kind = ""
    unknown: Callable[..., EventHubError] = NotFound
    pagination_class = CursorPagination
    filterset_class = FilterSet
    ordering: tuple[str, ...] = ("pk",)
    listed: tuple[str, ...] = ()  # columns of a list, if rows are enough: half the time of models
    cursor: tuple[str, ...] = ()  # fields of a page's `next`, if they are not those

    @cached_property
    def actor(self) -> Actor:
        """Who acts: a key in its own zone, or an operator in the zone of `?zone=`; 404 for another
        zone. The names in the path are names, too.
        """
        asked = self.request.query_params.get("zone")
        if asked is not None:
            valid_name(asked, field="zone")
        actor = selectors.actor_of(self.request.auth, zone=asked)
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

    @property
    def if_match(self) -> int | None:
        """The sequence after which the resource must not have changed; 0: it must not be there;
        None: no condition.
        """
        return conditions.condition_of(self.request)

    @cached_property
    def filterset(self) -> FilterSet:
        return self.filterset_class(self.request.query_params, self.queryset, request=self.request)

    @property
    def asked(self) -> dict[str, Any]:
        """The values of the filters; None: not given."""
        return self.filterset.asked

    # --- what is said of it ---

    @property
    def said(self) -> Operation:
        """What is said of the action; of lists and single ones the noun is enough."""
        action = self.action or ""  # empty: the method is refused
        for name in _SAID_OF.get(action, (f"perform_{action}", action)):
            found: Operation | None = getattr(getattr(type(self), name, None), "operation", None)
            if found is not None:
                return found
        one, many = self.noun
        return Operation(f"List {many}" if action == "list" else f"Show {one}")

    def parameters(self) -> Sequence[OpenApiParameter]:
        found = [ZONE]
        if self.kind:
            found += conditions.CONDITIONS.get(self.request.method, ())
        if self.action == "list":
            found += [*self.pagination_class.parameters, *self.filterset_class.parameters()]
        return [*found, *self.said.parameters]

    def get_permissions(self) -> Any:
        return [one() for one in self.said.permissions or self.permission_classes]

    def not_found(self) -> EventHubError:
        return self.unknown(field=self.lookup_url_kwarg)

    def name_of(self, item: Any) -> str:
        """What names an item in `resource_changes`."""
        return str(getattr(item, self.lookup_field))

    def resource(self, item: Any) -> Resource:
        return Resource(self.kind, self.actor.zone_id, self.name_of(item))

    # --- actions ---

    def list(self, request: Request, **kwargs: Any) -> Response:
        queryset = self.filter_queryset(self.get_queryset())
        if self.listed and isinstance(queryset, QuerySet):
            queryset = queryset.values_list(*self.listed, named=True)
        items = self.paginate_queryset(queryset)
        return self.get_paginated_response(self.shown_items(items))

    def filter_queryset(self, queryset: Any) -> Any:
        """What SQL lists is filtered by its statement."""
        known = isinstance(queryset, QuerySet)
        return self.filterset.filter_queryset(queryset) if known else queryset

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

    # --- what they share ---

    def body(self) -> dict[str, Any]:
        """The validated body; a missing body is an empty object."""
        partial = self.request.method == "PATCH"
        found = self.said.body(data=self.request.data, partial=partial, context={"view": self})
        found.is_valid(raise_exception=True)
        return dict(found.validated_data)

    def shown_items(self, items: Iterable[Any], serializer: Any = None) -> Sequence[dict[str, Any]]:
        """The items of a list, with when each has changed last."""
        items = [*items]
        serializer = serializer or self.get_serializer_class()
        found = [serializer.represent(item) for item in items]
        if not self.kind:
            return found
        names = [*map(self.name_of, items)]
        return conditions.with_changes(found, self.kind, self.actor.zone_id, names)

    def answer(self, item: Any, status: int = 200, serializer: Any = None) -> Response:
        """One item, with its ETag if it has one. What is shown once is not stored on the way."""
        serializer = serializer or self.said.answer or self.get_serializer_class()
        body, status = serializer.represent(item), self.said.status or status
        if self.kind:
            found = conditions.tagged(body, self.resource(item), status)
        else:
            found = Response(body, status)
        if getattr(serializer, "shown_once", False):
            found["Cache-Control"] = "no-store"
        return found
