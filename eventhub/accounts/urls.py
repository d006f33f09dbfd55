"""Routes of zones, clients, channels, credentials and operators, below /v1/. Django module."""

from django.urls import path

from eventhub.accounts.api import (
    Channels,
    Clients,
    ConnectionTokens,
    Keys,
    LoginSession,
    RestoredChannel,
    RestoredZone,
    Zones,
)
from eventhub.accounts.operators_api import Operators, OperatorSetup, OwnPassword, SetupTokens
from eventhub.api.resource import CHANGE_AND_DELETE, LIST, LIST_AND_CREATE, ONE

urlpatterns = [
    path("zones", Zones.as_view(LIST_AND_CREATE)),
    path("zones/<str:name>", Zones.as_view({**ONE, "delete": "destroy"})),
    path("zones/<str:name>/restore", RestoredZone.as_view({"post": "create"})),
    path("clients", Clients.as_view(LIST_AND_CREATE)),
    path("clients/<str:client>", Clients.as_view(CHANGE_AND_DELETE)),
    path("clients/<str:client>/keys", Keys.as_view(LIST_AND_CREATE)),
    path("keys/<str:public_id>", Keys.as_view(CHANGE_AND_DELETE)),
    path("connection-tokens", ConnectionTokens.as_view({"post": "create"})),
    path("channels", Channels.as_view(LIST)),
    path("channels/<str:channel>", Channels.as_view({"put": "update", "delete": "destroy"})),
    path("channels/<str:channel>/restore", RestoredChannel.as_view({"post": "create"})),
    path("operators", Operators.as_view(LIST_AND_CREATE)),
    path("operators/<str:operator>", Operators.as_view(CHANGE_AND_DELETE)),
    path("operators/<str:operator>/setup-token", SetupTokens.as_view({"post": "create"})),
    path("session/setup", OperatorSetup.as_view({"post": "create"})),
    path("session/password", OwnPassword.as_view({"post": "create"})),
    path(
        "session", LoginSession.as_view({"get": "retrieve", "post": "create", "delete": "destroy"})
    ),
]
