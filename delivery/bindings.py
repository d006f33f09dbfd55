"""The event variables that a notification binds: `Ev1: MyAlarm | $Priority > 5` binds `Ev1` to the
event that matched (RDY-17). Plain module.
"""

from collections.abc import Mapping
from urllib.parse import quote

import orjson

from eventhub.eventlog.stored import Cursor


def bindings_json(variables: Mapping[int, str], cursor: Cursor) -> str:
    """Return `{"7": {"Ev1": {"segment": …, "sequence": …}}}`: by registration, ascending, by
    variable, the cursor of the event.
    """
    event = cursor._asdict()
    bound = {str(id): {name: event} for id, name in sorted(variables.items())}
    return orjson.dumps(bound).decode()


def bindings_header(variables: Mapping[int, str]) -> str:
    """Return the variables for a header, `7=Ev1,9=Alarm`, percent-encoded beyond ASCII."""
    return ",".join(f"{id}={quote(name)}" for id, name in sorted(variables.items()))
