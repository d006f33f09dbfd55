"""Routes of deliveries, of the listeners of a client, and of the overview, below /v1/. Django
module.
"""

from django.urls import path

from delivery.api import ClientListeners, Deliveries, ZoneOverview
from delivery.presence.api import Presence
from delivery.recovery import replay_api as replays
from delivery.recovery.api import (
    DeadLetters,
    DeliveryDiscard,
    DeliveryResend,
    DeliverySkip,
    EndpointExamples,
)
from delivery.statistics.api import AttemptStatistics
from delivery.tenant_limits.api import TenantLimits
from eventhub.api.resource import LIST, LIST_AND_CREATE, ONE, PUT

CREATE = {"post": "create"}

urlpatterns = [
    path("deliveries", Deliveries.as_view(LIST)),
    path("deliveries/<str:delivery>", Deliveries.as_view(ONE)),
    path("deliveries/<str:delivery>/resend", DeliveryResend.as_view(CREATE)),
    path("deliveries/<str:delivery>/skip", DeliverySkip.as_view(CREATE)),
    path("deliveries/<str:delivery>/discard", DeliveryDiscard.as_view(CREATE)),
    path("dead-letters", DeadLetters.as_view(LIST)),
    path("replays", replays.Replays.as_view(LIST_AND_CREATE)),
    path("replays/preview", replays.ReplayPreview.as_view(CREATE)),
    path("replays/<str:replay>", replays.Replays.as_view(ONE)),
    path("replays/<str:replay>/pause", replays.ReplayPause.as_view(CREATE)),
    path("replays/<str:replay>/resume", replays.ReplayResume.as_view(CREATE)),
    path("replays/<str:replay>/cancel", replays.ReplayCancel.as_view(CREATE)),
    path("endpoints/<str:endpoint>/statistics", AttemptStatistics.as_view(ONE)),
    path("endpoints/<str:endpoint>/examples", EndpointExamples.as_view(CREATE)),
    path("endpoints/<str:endpoint>/recover", replays.Recovery.as_view(CREATE)),
    path("endpoints/<str:endpoint>/recover/preview", replays.RecoveryPreview.as_view(CREATE)),
    path("clients/<str:client>/listeners", ClientListeners.as_view(LIST)),
    path("overview", ZoneOverview.as_view(ONE)),
    path("presence", Presence.as_view(LIST)),
    path("limits", TenantLimits.as_view(PUT)),
]
