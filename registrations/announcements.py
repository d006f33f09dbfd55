"""The announcements of changes of registrations in `system`. Plain module."""

from collections.abc import Sequence
from typing import NamedTuple

from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement
from registrations.statements import VersionRow


class RegistrationChanged(NamedTuple):
    """A change of one registration: its new version, or the last one if it ends."""

    zone_id: int
    client: str
    version: VersionRow
    barrier: int

    def announcement(self, type: str, streams: Sequence[str]) -> Announcement:
        """Return the announcement, with the names of the streams before and after the change."""
        version, definition = self.version, self.version.definition
        attributes = {
            "client": self.client,
            "registration": version.registration,
            "version": version.number,
            "barrier": self.barrier,
            "streams": [*streams],
            "suspended": definition.suspended,
            "group": definition.group,
            "key": version.key,
            "session": version.owner.session,
            "session_group": version.owner.session_group,
        }
        resource = Resource("registration", self.zone_id, str(version.registration))
        return Announcement(type, attributes, resource)
