"""Routes of deliveries, of the listeners of a client, and of the overview, below /v1/. Django
module.
"""

from django.urls import path

from delivery.api import ClientListeners, Deliveries, ZoneOverview
from delivery.tenant_limits.api import TenantLimits
from eventhub.api.resource import LIST, ONE, PUT

urlpatterns = [
    path("deliveries", Deliveries.as_view(LIST)),
    path("deliveries/<str:delivery>", Deliveries.as_view(ONE)),
    path("clients/<str:client>/listeners", ClientListeners.as_view(LIST)),
    path("overview", ZoneOverview.as_view(ONE)),
    path("limits", TenantLimits.as_view(PUT)),
]
