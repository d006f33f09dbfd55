"""The events that a pattern creates by `assign` and `announce` (RDY-31, RDY-33). Plain module."""

from registrations.filters.values import MISSING
from registrations.patterns.ast import NewEventForm
from registrations.patterns.pattern_engine import NewEvent
from registrations.patterns.values import Bindings, Counters, PatternValue

_NO_COUNTERS: Counters = {}


class NewEventValues:
    """A form of an event, and how its attributes are computed. `variable`: that it is bound to."""

    def __init__(self, form: NewEventForm, variable: str = "") -> None:
        self.variable = variable
        self._form = form
        self.values = tuple((name, PatternValue(operand)) for name, operand in form.attributes)

    def of(self, bindings: Bindings, counters: Counters = _NO_COUNTERS) -> NewEvent:
        """Create the event; an attribute without a value is left out."""
        found = ((name, value.of(bindings, counters)) for name, value in self.values)
        attributes = {name: value for name, value in found if value is not MISSING}
        return NewEvent(self._form.domain, self._form.type, attributes)
