"""The kinds of connectors, one module each: one more is one file and one line here.
SQL module.
"""

from typing import Any

import msgspec

from eventhub.event.inbound import refuse_json
from registrations.connectors.kinds import kafka, outbox_polling, outbox_replication
from registrations.connectors.kinds.kind import ConnectorKind

_MODULES = (outbox_polling, outbox_replication, kafka)
KINDS: dict[str, ConnectorKind] = {one.KIND.name: one.KIND for one in _MODULES}


def parse_settings(kind: ConnectorKind, given: Any) -> Any:
    """Return the settings of a kind. Raises subclasses of BadRequest with the field."""
    try:
        return msgspec.convert(given, kind.settings)
    except msgspec.ValidationError as error:
        refuse_json(error)
