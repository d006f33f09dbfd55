"""The overview of a zone: what the console's first page shows."""

from delivery.overview.selectors import Overview, overview
from delivery.overview.serializers import OverviewSerializer
from eventhub.access.permissions import IsZoneManager
from eventhub.access.resource import ResourceView, operation


class ZoneOverview(ResourceView):
    """How a zone is doing. Cheap: counts are bounded."""

    permission_classes = (IsZoneManager,)
    serializer_class = OverviewSerializer

    @operation("Show a zone's overview")
    def get_object(self) -> Overview:
        return overview(zone_id=self.actor.zone_id)
