"""Routes of deliveries, below /v1/deliveries."""

from django.urls import path

from delivery import api

urlpatterns = [
    path("", api.Deliveries.as_view()),
    path("/<str:delivery>", api.OneDelivery.as_view()),
]
