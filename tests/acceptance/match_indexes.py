"""Match indexes of a live hub's streams."""

import re
from pathlib import Path

import psycopg

from registrations.match_index.epochs.build import build_stream
from registrations.match_index.format.manifest import IndexManifest
from tests.live import LiveHub, LiveZone


def build(hub: LiveHub, zone: LiveZone, stream: str = "orders") -> IndexManifest:
    """Build the index of a stream."""
    [(stream_id,)] = hub.sql(
        "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.name = %s",
        zone.name,
        stream,
    )
    with psycopg.connect(hub.database_url, autocommit=True) as connection:
        return build_stream(connection, Path(hub.env["EVENTHUB_DATA"]), stream_id)


def is_used(hub: LiveHub, manifest: IndexManifest) -> bool:
    """Return whether a forwarder uses the epoch; a lease may change its owner at any time."""
    logs = "".join({process.log() for process in hub.forwarders})
    stream = manifest.facts["stream"]
    return re.search(rf"epoch={manifest.epoch} how=.* stream={stream}\b", logs) is not None
