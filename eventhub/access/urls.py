"""Routes of the access room, below /v1/."""

from django.urls import path

from eventhub.access import api, key_api

urlpatterns = [
    path("zones", api.Zones.as_view()),
    path("clients", api.Clients.as_view()),
    path("clients/<str:client>", api.OneClient.as_view()),
    path("clients/<str:client>/keys", key_api.ClientKeys.as_view()),
    path("keys/<str:public_id>", key_api.OneKey.as_view()),
    path("connection-tokens", key_api.ConnectionTokens.as_view()),
    path("channels", api.Channels.as_view()),
    path("channels/<str:channel>", api.OneChannel.as_view()),
    path("session", key_api.Login.as_view()),
]
