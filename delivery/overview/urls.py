"""Route of the overview, below /v1/."""

from django.urls import path

from delivery.overview import api

urlpatterns = [path("overview", api.ZoneOverview.as_view())]
