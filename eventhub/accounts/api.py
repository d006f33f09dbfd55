"""Views of zones, clients, channels, API keys, connection tokens and operators' logins.
Django module.
"""

from functools import partial
from typing import Any

from django.contrib.auth import logout
from django.db.models import QuerySet
from django.middleware.csrf import get_token
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.access import selectors
from eventhub.access.credential_queries import OPERATOR_GRANTS
from eventhub.access.keys import is_public_id
from eventhub.access.models import ApiKey, Channel, Client, Zone
from eventhub.access.names import valid_name
from eventhub.access.operators import role_of
from eventhub.access.roles import ADMIN, VIEWER
from eventhub.access.tokens import Claims, TokenClaims
from eventhub.accounts import keys, login, serializers, services
from eventhub.accounts.keys import KeyTerms
from eventhub.api.grace import GRACE, read_grace
from eventhub.api.json import LoginJSONParser
from eventhub.api.pagination import WholeList
from eventhub.api.permissions import AllowAnyone, IsOperator, IsZoneManager
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import EmptySerializer
from eventhub.base import errors
from eventhub.eventlog.errors import NotDeleting, OnHold


class Zones(ResourceView):
    """Zones, the tenants of the hub; managed by operators."""

    noun = "a zone", "zones"
    permission_classes = (IsOperator,)
    queryset = Zone.objects.all()
    serializer_class = serializers.ZoneSerializer
    ordering = ("name",)
    lookup_field = lookup_url_kwarg = "name"

    @property
    def key(self) -> str:
        return valid_name(self.kwargs["name"], field="name")

    def get_queryset(self) -> QuerySet[Zone]:
        return selectors.list_zones()

    @operation("Create a zone", errors.Conflict, body=serializers.NewZoneSerializer)
    def perform_create(self, body: dict[str, Any]) -> Zone:
        return services.create_zone(**body)

    @operation(
        "Schedule the deletion of a zone, after a grace period",
        *(errors.InvalidField, OnHold),
        parameters=(GRACE,),
        role=ADMIN,
        response=serializers.ZoneSerializer,
        status=202,
    )
    def destroy(self, request: Request, **kwargs: Any) -> Response:
        grace_s = read_grace(request)
        return self.answer(services.schedule_zone_deletion(name=self.key, grace_s=grace_s))


class RestoredZone(Zones):
    """A zone whose scheduled deletion is withdrawn."""

    @operation(
        "Withdraw the scheduled deletion of a zone", NotDeleting, body=EmptySerializer, status=200
    )
    def perform_create(self, body: dict[str, Any]) -> Zone:
        return services.withdraw_zone_deletion(name=self.key)


class Clients(ResourceView):
    """The clients of a zone."""

    noun = "a client", "clients"
    kind = "client"
    unknown = partial(errors.NotFound, selectors.NO_CLIENT)
    lookup_field = "name"
    lookup_url_kwarg = "client"
    permission_classes = (IsZoneManager,)
    queryset = Client.objects.all()
    serializer_class = serializers.ClientSerializer
    ordering = ("name",)

    def get_queryset(self) -> QuerySet[Client]:
        return selectors.live_clients(zone_id=self.actor.zone_id)

    @operation(
        "Create a client",
        errors.Conflict,
        errors.LimitReached,
        body=serializers.NewClientSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> Client:
        return services.create_client(zone_id=self.actor.zone_id, **body)

    @operation("Change the groups of a client", body=serializers.ClientChangeSerializer)
    def perform_partial_update(self, body: dict[str, Any]) -> Client:
        zone_id, name, since = self.actor.zone_id, self.key, self.if_match
        return services.change_client(zone_id=zone_id, name=name, if_match=since, **body)

    @operation("Delete a client; its keys, registrations and endpoints end with it")
    def perform_destroy(self) -> None:
        services.delete_client(zone_id=self.actor.zone_id, name=self.key, if_match=self.if_match)


class Channels(ResourceView):
    """The channel names of a zone. Every key of the zone may read them."""

    noun = "a channel", "channels"
    kind = "channel"
    lookup_field = "name"
    lookup_url_kwarg = "channel"
    queryset = Channel.objects.all()
    serializer_class = serializers.ChannelSerializer
    pagination_class = WholeList

    def get_queryset(self) -> list[Channel]:
        return selectors.list_channels(zone_id=self.actor.zone_id)

    @operation(
        "Define a channel",
        errors.ChannelConflict,
        body=serializers.ChannelMaskSerializer,
        permissions=(IsZoneManager,),
    )
    def perform_update(self, body: dict[str, Any]) -> tuple[Channel, bool]:
        return services.define_channel(
            zone_id=self.actor.zone_id, name=self.key, bit=body["mask"], if_match=self.if_match
        )

    @operation(
        "Schedule the deletion of a channel, after a grace period",
        errors.InvalidField,
        parameters=(GRACE,),
        permissions=(IsZoneManager,),
        response=serializers.ChannelSerializer,
        status=202,
    )
    def destroy(self, request: Request, **kwargs: Any) -> Response:
        found = services.schedule_channel_deletion(
            zone_id=self.actor.zone_id,
            name=self.key,
            grace_s=read_grace(request),
            if_match=self.if_match,
        )
        return self.answer(found)


class RestoredChannel(Channels):
    """A channel whose scheduled deletion is withdrawn."""

    @operation(
        "Withdraw the scheduled deletion of a channel",
        NotDeleting,
        body=EmptySerializer,
        permissions=(IsZoneManager,),
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> Channel:
        return services.withdraw_channel_deletion(zone_id=self.actor.zone_id, name=self.key)


class Keys(ResourceView):
    """The keys of a client; one by its public id."""

    noun = "a key", "a client's keys"
    kind = "key"
    unknown = partial(errors.NotFound, "This zone has no such key.")
    lookup_field = lookup_url_kwarg = "public_id"
    permission_classes = (IsZoneManager,)
    queryset = ApiKey.objects.all()
    serializer_class = serializers.KeySerializer
    ordering = ("public_id",)

    def get_queryset(self) -> QuerySet[ApiKey]:
        """Select the keys, including revoked ones."""
        all_keys = ApiKey.objects.select_related("client")
        if "client" not in self.kwargs:
            return all_keys.filter(client__zone_id=self.actor.zone_id)
        client = selectors.find_client(zone_id=self.actor.zone_id, name=self.kwargs["client"])
        return all_keys.filter(client=client)

    @property
    def key(self) -> str:
        text: str = self.kwargs["public_id"]
        if not is_public_id(text):
            raise self.not_found()
        return text

    @operation(
        "Issue a key; it is shown only once",
        errors.LimitReached,
        body=serializers.NewKeySerializer,
        response=serializers.IssuedKeySerializer,
        role=ADMIN,
    )
    def perform_create(self, body: dict[str, Any]) -> ApiKey:
        client = selectors.find_client(zone_id=self.actor.zone_id, name=self.kwargs["client"])
        grants, terms = body.pop("grants"), KeyTerms(**body)
        return keys.issue_key(actor=self.actor, client=client, grants=grants, terms=terms)

    @operation(
        "Change a key's grants, label or allowed addresses",
        body=serializers.KeyChangeSerializer,
        role=ADMIN,
    )
    def perform_partial_update(self, body: dict[str, Any]) -> ApiKey:
        return keys.change_key(actor=self.actor, public_id=self.key, if_match=self.if_match, **body)

    @operation("Revoke a key")
    def perform_destroy(self) -> None:
        keys.revoke_key(actor=self.actor, public_id=self.key, if_match=self.if_match)


class ConnectionTokens(ResourceView):
    """Short-lived tokens for pages that cannot send headers. A token of an operator's login listens
    in one zone.
    """

    serializer_class = serializers.TokenSerializer

    @operation("Mint a connection token", body=serializers.TokenRequestSerializer, role=VIEWER)
    def perform_create(self, body: dict[str, Any]) -> dict[str, Any]:
        key, grants = self.actor.principal, body["grants"]
        claims: Claims
        if key is None:
            claims = login.claims_of(self.request._request, self.actor.zone_id, grants)
        else:
            claims = TokenClaims(key.public_id, grants)
        own = OPERATOR_GRANTS if key is None else key.grants
        return keys.mint(own=own, claims=claims, lifetime_s=body["lifetime_s"])


class LoginSession(ResourceView):
    """An operator's login for browsers."""

    permission_classes = (AllowAnyone,)
    parser_classes = (LoginJSONParser,)
    serializer_class = serializers.LoginStateSerializer

    @property
    def operator(self) -> bool:
        return self.request.user is not None and self.request.auth is None

    @operation("Show who is logged in", errors.Unauthenticated)
    def get_object(self) -> dict[str, str]:
        if not self.operator:
            raise errors.Unauthenticated("Nobody is logged in; log in with POST /v1/session.")
        return login_state(self.request, self.request.user)

    def create(self, request: Request, **kwargs: Any) -> Response:
        """Count the attempt before its body is validated."""
        login.count_attempt(request=request._request)
        return super().create(request, **kwargs)

    @operation(
        "Log an operator in",
        errors.InvalidLogin,
        errors.TooManyRequests,
        body=serializers.LoginSerializer,
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> dict[str, str]:
        found = login_state(self.request, login.log_in(request=self.request._request, **body))
        self.open_reply()
        return found

    @operation("Log out", errors.CsrfFailed)
    def perform_destroy(self) -> None:
        if self.operator:
            logout(self.request._request)


def login_state(request: Request, user: Any) -> dict[str, str]:
    """Return the login of a user, with the token that its writes need."""
    token = get_token(request._request)
    return {"username": user.get_username(), "role": role_of(user), "csrf_token": token}
