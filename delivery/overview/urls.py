"""Route of the overview, below /v1/."""

from django.urls import path

from delivery.overview import api
from eventhub.access.resource import ONE

urlpatterns = [path("overview", api.ZoneOverview.as_view(ONE))]
