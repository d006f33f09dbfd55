"""Routes of the types room, below /v1/types."""

from django.urls import path

from eventhub.types import api

urlpatterns = [
    path("", api.Types.as_view()),
    path("/<str:domain>/<str:type>", api.OneType.as_view()),
    path("/<str:domain>/<str:type>/<str:version>", api.OneVersion.as_view()),
]
