"""Door to the overview of a zone: what the console's first page shows."""

from rest_framework.request import Request
from rest_framework.response import Response

from delivery.health import watch
from delivery.overview import selectors
from delivery.overview.serializers import OverviewSerializer, overview_json
from eventhub import errors
from eventhub.access.schema import Operation, documented
from eventhub.access.view import ManagementView, actor_of
from eventhub.clock import SystemClock
from eventhub.event.json_codec import time_text


class ZoneOverview(ManagementView):
    """How a zone is doing. Cheap: counts are bounded."""

    @documented(Operation("Show a zone's overview", {200: OverviewSerializer}, (errors.NotFound,)))
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        at = time_text(SystemClock().now_us())
        found = selectors.overview(zone_id=actor.zone_id)
        return Response(overview_json(found, at=at, health=watch.last_report()))
