"""What a process says of the hub's health: its components, each with a status. Plain module.

Ready means that this process can emit and listen. A component that does not work and is not needed
for that makes the hub degraded. Reasons hold no name of a zone, stream, client or endpoint, and no
address: they are shown to the key of any zone.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple, NotRequired, Protocol, TypedDict, get_args

from eventhub.event.json_codec import time_text
from eventhub.event.json_types import Time

# `off`: not configured here. `starting`: not seen yet, shortly after a start. `unknown`: could not
# be looked at lately.
Status = Literal["ok", "off", "starting", "degraded", "unknown", "down"]
STATUSES: tuple[str, ...] = get_args(Status)
WELL = ("ok", "off", "starting")
NEEDED = ("database", "system")  # of emit and listen; the others only degrade the hub

Overall = Literal["ready", "degraded", "not ready"]
OVERALL: tuple[str, ...] = get_args(Overall)


class ComponentStateJson(TypedDict):
    """One part of the hub. `reason` and `since` only for those who hold a key or are logged in."""

    name: str
    status: Status
    reason: NotRequired[str | None]
    since: NotRequired[Time | None]


class ReadinessJson(TypedDict):
    """What all parts come to, as of a moment; null: nothing was looked at yet."""

    status: Overall
    as_of: Time | None
    components: list[ComponentStateJson]


class Component(NamedTuple):
    """One part of the hub. `since_us`: from when on the reason holds, where that is known."""

    name: str
    status: Status
    reason: str = ""
    since_us: int | None = None

    def json(self) -> ComponentStateJson:
        since = None if self.since_us is None else time_text(self.since_us)
        return {
            "name": self.name,
            "status": self.status,
            "reason": self.reason or None,
            "since": since,
        }


DATABASE_DOWN = Component("database", "down", "The database does not answer.")
SYSTEM_DOWN = Component("system", "down", "The stream `system` was not confirmed within a second.")


class Report(NamedTuple):
    """All components as of a moment; 0: nothing was looked at yet."""

    as_of_us: int
    components: tuple[Component, ...]

    def overall(self) -> Overall:
        """What all components come to."""
        if any(each.status not in WELL for each in self.components if each.name in NEEDED):
            return "not ready"
        return "ready" if all(each.status in WELL for each in self.components) else "degraded"

    def replacing(self, fresher: Iterable[Component]) -> "Report":
        """The same report with components of the same names that were looked at just now."""
        by_name = {each.name: each for each in fresher}
        found = tuple(by_name.get(each.name, each) for each in self.components)
        return self._replace(components=found)

    def json(self) -> ReadinessJson:
        """With reasons, for those who hold a key or are logged in."""
        return self._json([each.json() for each in self.components])

    def public_json(self) -> ReadinessJson:
        """Names and statuses alone, for everybody."""
        return self._json([{"name": each.name, "status": each.status} for each in self.components])

    def _json(self, components: list[ComponentStateJson]) -> ReadinessJson:
        as_of = time_text(self.as_of_us) if self.as_of_us else None
        return {"status": self.overall(), "as_of": as_of, "components": components}


class Health(Protocol):
    """Whoever looks at the hub's components now and then."""

    def report(self) -> Report:
        """What the last look found; asks nobody."""
        ...
