"""The events of a fault run. All content follows from the name, so a judge needs no copy.

A name is `emitter.incarnation.number`. Plain.
"""

from typing import Any, NamedTuple

COLORS = ("red", "green", "blue")
CITIES = ("Basel", "Lyon", "Turin", "Ulm")
SIZES = 8
DOMAIN = "chaos"
PERIOD = 24  # all that can be filtered on follows from the number modulo this
TICKS = 16  # of a period; the others are noise
PADDING = "x" * 160


class Name(NamedTuple):
    """The emitter of an event, its incarnation, and the event's number in it, from 1."""

    emitter: str
    incarnation: int
    number: int

    def __str__(self) -> str:
        return f"{self.emitter}.{self.incarnation}.{self.number}"

    @classmethod
    def parse(cls, text: str) -> "Name":
        emitter, incarnation, number = text.split(".")
        return cls(emitter, int(incarnation), int(number))


def mask_of(number: int) -> int:
    """Return one of four channel bits."""
    return 1 << number % 4


def color_of(number: int) -> str:
    return COLORS[number % len(COLORS)]


def type_of(number: int) -> str:
    """Return the type: two of three events are ticks."""
    return "tick" if number % PERIOD < TICKS else "noise"


def facts_of(number: int) -> dict[str, Any]:
    """Return the attributes that registrations filter on."""
    return {
        "color": color_of(number),
        "size": number % SIZES,
        "place": {"city": CITIES[number % len(CITIES)]},
    }


def event_of(name: Name, *, at: float, with_id: bool) -> dict[str, Any]:
    """Return the event as the emit route accepts it. `at`: the time of the first attempt by this
    process's clock; `with_id`: with a producer's id, so that it may be repeated.
    """
    event: dict[str, Any] = {
        "domain": DOMAIN,
        "type": type_of(name.number),
        "mask": str(mask_of(name.number)),
        "attributes": {"name": str(name), "at": at, **facts_of(name.number)},
        "body": PADDING,
    }
    if with_id:
        event["id"] = {"incarnation": name.incarnation, "sequence": name.number}
    return event


class Interest(NamedTuple):
    """The interest of a reader in a stream; None: all events."""

    mask: int | None = None
    color: str | None = None

    def wants(self, number: int) -> bool:
        if self.mask is not None and not self.mask & mask_of(number):
            return False
        return self.color is None or self.color == color_of(number)

    def fields(self) -> dict[str, Any]:
        """Return the fields of a listen message."""
        fields: dict[str, Any] = {}
        if self.mask is not None:
            fields["mask"] = str(self.mask)
        if self.color is not None:
            fields["attributes"] = {"color": self.color}
        return fields
