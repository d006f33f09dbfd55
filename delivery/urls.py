"""Routes of deliveries, below /v1/deliveries."""

from django.urls import path

from delivery.api import Deliveries
from eventhub.access.resource import LIST, ONE

urlpatterns = [
    path("", Deliveries.as_view(LIST)),
    path("/<str:delivery>", Deliveries.as_view(ONE)),
]
