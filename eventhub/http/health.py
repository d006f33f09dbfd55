"""The health of the hub as a process reports it: its components, each with a status. Plain module.

Ready means that this process can serve emits and listeners. A failing component that they do not
need makes the hub degraded. Reasons contain no address and no name of a zone, stream, client or
endpoint, because the key of any zone may read them.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple, NotRequired, Protocol, TypedDict, get_args

from eventhub.event.json_codec import time_text
from eventhub.event.json_types import Time

# `off`: not configured here. `starting`: not checked yet, shortly after a start. `unknown`: could
# not be checked recently.
Status = Literal["ok", "off", "starting", "degraded", "unknown", "down"]
STATUSES: tuple[str, ...] = get_args(Status)
WELL = ("ok", "off", "starting")
NEEDED = ("database", "system")  # by emits and listeners; the others only degrade the hub

Overall = Literal["ready", "degraded", "not ready"]
OVERALL: tuple[str, ...] = get_args(Overall)


class ComponentStateJson(TypedDict):
    """One component. Only callers with a key or a login receive `reason` and `since`."""

    name: str
    status: Status
    reason: NotRequired[str | None]
    since: NotRequired[Time | None]


class ReadinessJson(TypedDict):
    """The overall status and its components. `as_of`: the time of the checks; null: none yet."""

    status: Overall
    as_of: Time | None
    components: list[ComponentStateJson]


class Component(NamedTuple):
    """One component of the hub. `since_us`: when its status began, if known."""

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


class HealthReport(NamedTuple):
    """All components. `as_of_us`: the time of the checks; 0: none yet."""

    as_of_us: int
    components: tuple[Component, ...]

    def overall(self) -> Overall:
        """Return the status of the hub, of those of its components."""
        if any(each.status not in WELL for each in self.components if each.name in NEEDED):
            return "not ready"
        return "ready" if all(each.status in WELL for each in self.components) else "degraded"

    def replacing(self, fresher: Iterable[Component]) -> "HealthReport":
        """Return the report with its components replaced by fresher ones of the same names."""
        by_name = {each.name: each for each in fresher}
        found = tuple(by_name.get(each.name, each) for each in self.components)
        return self._replace(components=found)

    def json(self) -> ReadinessJson:
        """Return the report with reasons, for callers with a key or a login."""
        return self._json([each.json() for each in self.components])

    def public_json(self) -> ReadinessJson:
        """Return names and statuses only, for callers without credentials."""
        return self._json([{"name": each.name, "status": each.status} for each in self.components])

    def _json(self, components: list[ComponentStateJson]) -> ReadinessJson:
        as_of = time_text(self.as_of_us) if self.as_of_us else None
        return {"status": self.overall(), "as_of": as_of, "components": components}


class Health(Protocol):
    """A periodic check of the hub's components."""

    def report(self) -> HealthReport:
        """Return the result of the last check, without a new one."""
        ...
