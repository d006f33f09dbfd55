"""Routes of deliveries, of the listeners of a client, and of the overview, below /v1/. Django
module.
"""

from django.urls import path

from delivery.api import ClientListeners, Deliveries, ZoneOverview
from delivery.recovery.api import DeliveryDiscard, DeliveryResend, DeliverySkip
from eventhub.api.resource import LIST, ONE

CREATE = {"post": "create"}

urlpatterns = [
    path("deliveries", Deliveries.as_view(LIST)),
    path("deliveries/<str:delivery>", Deliveries.as_view(ONE)),
    path("deliveries/<str:delivery>/resend", DeliveryResend.as_view(CREATE)),
    path("deliveries/<str:delivery>/skip", DeliverySkip.as_view(CREATE)),
    path("deliveries/<str:delivery>/discard", DeliveryDiscard.as_view(CREATE)),
    path("clients/<str:client>/listeners", ClientListeners.as_view(LIST)),
    path("overview", ZoneOverview.as_view(ONE)),
]
