"""Routes of event types, below /v1/types. Django module."""

from django.urls import path

from eventhub.api.resource import LIST, ONE, PUT
from eventhub.types import api, converters  # noqa: F401 - registers the converter `name`

urlpatterns = [
    path("", api.Types.as_view(LIST)),
    path("/<name:domain>/<name:type>", api.OneType.as_view({**PUT, "delete": "destroy"})),
    path("/<name:domain>/<name:type>/restore", api.RestoredType.as_view({"post": "create"})),
    path("/<name:domain>/<name:type>/<str:version>", api.OneVersion.as_view(ONE)),
]
