"""What every view of the management API shares: who acts in which zone, strict bodies, queries and
pages.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from eventhub import limits
from eventhub.access import selectors
from eventhub.access.actor import Actor
from eventhub.access.authentication import KeyAuthentication, OperatorAuthentication
from eventhub.access.conditions import refuse_conditions
from eventhub.access.names import valid_name
from eventhub.access.parsers import shown
from eventhub.access.principal import Principal
from eventhub.access.replies import Reply, action_id, one_snapshot, replying
from eventhub.access.system import raw_connection
from eventhub.errors import InvalidField, NotFound, UnknownField, UnsupportedMediaType
from eventhub.eventlog.changes import position
from eventhub.eventlog.stored import Cursor

T = TypeVar("T")
_WITH_BODY = ("PATCH", "POST", "PUT")
_WHOLE = re.compile(r"[0-9]{1,18}")


class AlwaysJson(BaseContentNegotiation):
    """Answers are JSON whatever Accept says, so that an error is never a 406 in disguise."""

    def select_parser(self, request: Request, parsers: Sequence[Any]) -> Any:
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(
        self, request: Request, renderers: Sequence[Any], format_suffix: str | None = None
    ) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


class ManagementView(APIView):
    """A door: parse, call one function, answer."""

    authentication_classes = (KeyAuthentication, OperatorAuthentication)
    permission_classes: Sequence[Any] = (IsAuthenticated,)
    content_negotiation_class = AlwaysJson
    metadata_class = None  # OPTIONS is answered by the CORS layer or not at all
    queries: frozenset[str] = frozenset()  # names of query parameters beside `zone`
    conditional = True  # its changes take conditions
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

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.user is not None:  # strangers are told nothing, not even a number
            self._begin(request)
        refuse_conditions(request, kept=self.conditional)
        encoding = request.headers.get("Content-Encoding", "").strip().lower()
        if request.method in _WITH_BODY and encoding not in ("", "identity"):
            raise UnsupportedMediaType("The body must not be compressed; send it as it is.")
        for name in request.query_params:
            if name != "zone" and name not in self.queries:
                raise UnknownField("This query parameter is not known here.", field=shown(name))

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
        if self._reply is not None:
            done = found.status_code < 400
            for name, value in self._reply.headers(done=done).items():
                found[name] = value
        return found


class OpenView(ManagementView):
    """For whoever has not logged in yet."""

    permission_classes = (AllowAny,)


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


def read_body(request: Request, serializer: type[BaseSerializer]) -> dict[str, Any]:
    """The validated body; a missing body is an empty object."""
    found = serializer(data=request.data)
    found.is_valid(raise_exception=True)
    return dict(found.validated_data)


class Page(NamedTuple):
    """What part of a list is asked for: the items after `after` in the list's order."""

    after: str
    limit: int


def read_page(request: Request) -> Page:
    """`?after=` (the `next` of the page before) and `?limit=`."""
    after = request.query_params.get("after", "")
    if after:
        valid_name(after, field="after")
    text = request.query_params.get("limit", str(limits.PAGE_ITEMS_DEFAULT))
    if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= limits.PAGE_ITEMS_MAX:
        raise InvalidField(f"A limit is from 1 to {limits.PAGE_ITEMS_MAX}.", field="limit")
    return Page(after, int(text))


def cut_page(
    items: Sequence[T], limit: int, name: Callable[[T], str]
) -> tuple[list[T], str | None]:
    """Items fetched with one too many, as a page and where the next begins: None at the end."""
    if len(items) <= limit:
        return list(items), None
    return list(items[:limit]), name(items[limit - 1])
