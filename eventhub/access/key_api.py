"""API keys, connection tokens and operators' logins."""

from functools import partial
from typing import Any, NamedTuple

from django.contrib.auth import logout
from django.db.models import QuerySet
from django.middleware.csrf import get_token
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors
from eventhub.access import key_services, login, selectors, token_services
from eventhub.access.keys import is_public_id
from eventhub.access.models import ApiKey
from eventhub.access.parsers import LoginJSONParser
from eventhub.access.permissions import IsAnybody, IsZoneManager
from eventhub.access.principal import Principal
from eventhub.access.resource import ResourceView, operation
from eventhub.access.serializers import (
    IssuedKeySerializer,
    KeyChangeSerializer,
    KeySerializer,
    LoginSerializer,
    LoginStateSerializer,
    NewKeySerializer,
    TokenRequestSerializer,
    TokenSerializer,
)
from eventhub.access.token_services import MintedToken


class Keys(ResourceView):
    """The keys of a client; one by its public id."""

    noun = "a key", "a client's keys"
    kind = "key"
    unknown = partial(errors.NotFound, "This zone has no such key.")
    lookup_field = lookup_url_kwarg = "public_id"
    permission_classes = (IsZoneManager,)
    queryset = ApiKey.objects.all()
    serializer_class = KeySerializer
    ordering = ("public_id",)

    def get_queryset(self) -> QuerySet[ApiKey]:
        """Also revoked ones."""
        keys = ApiKey.objects.select_related("client")
        if "client" not in self.kwargs:
            return keys.filter(client__zone_id=self.actor.zone_id)
        client = selectors.find_client(zone_id=self.actor.zone_id, name=self.kwargs["client"])
        return keys.filter(client=client)

    @property
    def key(self) -> str:
        text: str = self.kwargs["public_id"]
        if not is_public_id(text):
            raise self.not_found()
        return text

    @operation(
        "Issue a key; it is shown this once",
        errors.LimitReached,
        body=NewKeySerializer,
        answer=IssuedKeySerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> ApiKey:
        terms = key_services.KeyTerms(**body)
        client = selectors.find_client(zone_id=self.actor.zone_id, name=self.kwargs["client"])
        issued = key_services.issue_key(actor=self.actor, client=client, terms=terms)
        issued.row.text = issued.text
        return issued.row

    @operation("Change a key's grants or label", body=KeyChangeSerializer)
    def perform_partial_update(self, body: dict[str, Any]) -> ApiKey:
        change = key_services.KeyChange(**body)
        return key_services.change_key(
            actor=self.actor, public_id=self.key, change=change, if_match=self.if_match
        )

    @operation("Revoke a key")
    def perform_destroy(self) -> None:
        key_services.revoke_key(actor=self.actor, public_id=self.key, if_match=self.if_match)


class ConnectionTokens(ResourceView):
    """Short-lived tokens for pages that cannot send headers: a key's, or an operator's login's to
    listen in one zone.
    """

    serializer_class = TokenSerializer

    @operation("Mint a connection token", body=TokenRequestSerializer)
    def perform_create(self, body: dict[str, Any]) -> MintedToken:
        actor = self.actor
        if actor.principal is not None:
            return token_services.mint(principal=actor.principal, **body)
        claims = login.claims_of(
            request=self.request._request, zone_id=actor.zone_id, grants=body["grants"]
        )
        return token_services.mint_for_login(login=claims, lifetime_s=body["lifetime_s"])


class LoginState(NamedTuple):
    username: str
    csrf_token: str


class Login(ResourceView):
    """An operator's login for browsers."""

    permission_classes = (IsAnybody,)
    parser_classes = (LoginJSONParser,)
    serializer_class = LoginStateSerializer

    @property
    def operator(self) -> bool:
        return self.request.user is not None and not isinstance(self.request.auth, Principal)

    def state(self, user: Any) -> LoginState:
        return LoginState(user.get_username(), get_token(self.request._request))

    @operation("Show who is logged in", errors.Unauthenticated)
    def get_object(self) -> LoginState:
        if not self.operator:
            raise errors.Unauthenticated("Nobody is logged in; use POST /v1/session.")
        return self.state(self.request.user)

    def create(self, request: Request, **kwargs: Any) -> Response:
        """Attempts are counted whatever is in them."""
        login.count_attempt(request=request._request)
        return super().create(request, **kwargs)

    @operation(
        "Log an operator in",
        errors.InvalidLogin,
        errors.TooManyRequests,
        body=LoginSerializer,
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> LoginState:
        return self.state(login.log_in(request=self.request._request, **body))

    @operation("Log out", errors.CsrfFailed)
    def perform_destroy(self) -> None:
        if self.operator:
            logout(self.request._request)
