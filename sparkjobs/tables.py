"""The tables that jobs read: what the hub exports before a job starts, as Parquet, each in a folder
of its name. Plain module.

Times are microseconds since 1970 UTC, as integers. All tables of a run are of one snapshot of the
database.
"""

import pyarrow as pa

SYSTEM_ZONE = 0  # of the hub-wide stream
INT, TEXT, BOOL = pa.int64(), pa.string(), pa.bool_()
NUMBERS, TEXTS = pa.list_(INT), pa.list_(TEXT)


def _columns(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


# Streams that are stored; a transient one is in nobody's history.
STREAMS = _columns(
    id=INT,
    zone_id=INT,  # 0: the hub-wide stream `system`
    zone=TEXT,  # "": the hub-wide stream
    name=TEXT,
    head=INT,  # the last sequence given
    forwarded=INT,  # matched for callbacks up to here; null: never forwarded
    needed=INT,  # the lowest sequence that a durable cursor still needs; null: none does
    keyed=BOOL,
    archive=BOOL,
    hold=TEXT,
    on_lag=TEXT,
    retain_events=INT,
    retain_bytes=INT,
    retain_age_s=INT,
)

# All segments that ever were, also those that left.
SEGMENTS = _columns(
    id=INT,
    uuid=TEXT,
    stream_id=INT,
    partition_id=INT,
    first=INT,
    last=INT,  # as recorded at sealing; of the open one its head; first - 1 when it is empty
    bytes=INT,  # stored bytes, likewise
    sealed=BOOL,
    tier=TEXT,  # live, archived, dropped
    opened_at_us=INT,
    sealed_at_us=INT,
    removed_at_us=INT,
    removal_reason=TEXT,
    archived=BOOL,  # it is said to be in the archive (and may be live as well)
    # where its rows are for this job: `export` (events/<id>.parquet of the inputs), `archive`, or
    # `none`: it was dropped, is empty, is not asked for, or is in an archive that this hub has not
    source=TEXT,
    file=TEXT,  # in the archive, below its URL; null: not archived, or the manifest says nothing
    file_bytes=INT,  # as its manifest says ...
    file_sha256=TEXT,
    payload_sha256=TEXT,
    appended_min_us=INT,
    appended_max_us=INT,  # ... null where there is no manifest
    fault=TEXT,  # of the manifest: missing_manifest, bad_manifest, wrong_range; null: none
)

# Of segments that are live *and* archived: what the database itself holds of them, which no export
# shows. A key of the table keeps a sequence from being there twice.
LIVE = _columns(
    segment_id=INT,
    events=INT,
    first=INT,  # lowest and highest sequence; null: no row is left
    last=INT,
    bytes=INT,
    missing=NUMBERS,  # sequences that are not there, ascending, the first 1,000 of them
)

# The rows of a segment as `reading.batches` gives them; exported files have these columns.
EVENTS = _columns(sequence=INT, appended_at_us=INT, mask=INT, payload=pa.binary())

# What every producer is known to have reached.
PRODUCERS = _columns(stream_id=INT, client=TEXT, incarnation=INT, highest_number=INT)

# The history of registrations: each version on each of its streams.
VERSIONS = _columns(
    stream_id=INT,
    id=INT,
    registration_id=INT,
    number=INT,
    client_id=INT,
    client=TEXT,
    zone_id=INT,
    zone=TEXT,
    endpoint_id=INT,  # null: of listeners only
    language=TEXT,
    filter=TEXT,  # as it was written, as JSON
    since=INT,  # exclusive: the stream's last sequence when it began
    until=INT,  # inclusive; null: it has not ended
    suspended=BOOL,  # by itself: it never holds
    group_id=INT,
    report=BOOL,  # what is told is less than the event
    began_at_us=INT,
    ended_at_us=INT,
)

# Declared types: what a filter that asks for a type matches of those below it (TypeHierarchy in
# registrations/filters/evaluate.py). An event that names a version was checked against it.
TYPES = _columns(
    zone_id=INT,
    domain=TEXT,
    type=TEXT,
    versions=INT,  # 1 to this one are known
    declared_us=NUMBERS,  # when each of them was; whoever matches may know some seconds later
    lineage=TEXTS,  # the type itself and the declared ones above it, the nearest first
)

# When a group of registrations matches nothing, as a stream sees it.
SUSPENSIONS = _columns(stream_id=INT, group_id=INT, since=INT, until=INT)

CLIENTS = _columns(id=INT, zone_id=INT, zone=TEXT, name=TEXT, groups=TEXTS)  # groups as of now

ENDPOINTS = _columns(
    id=INT,
    zone_id=INT,
    client_id=INT,
    client=TEXT,
    host=TEXT,  # of its URL, which may have secrets in it
    ordered=BOOL,
    enabled=BOOL,
    deleted_at_us=INT,
)

# One event owed to one endpoint: live partitions, and those that were archived when they left.
DELIVERIES = _columns(
    endpoint_id=INT,
    segment_id=INT,
    sequence=INT,
    run=INT,  # 0: live; else a replay
    stream_id=INT,
    partition_id=INT,
    registrations=NUMBERS,  # ascending
    state=TEXT,  # pending, delivered, dead_lettered, cancelled, dropped, expired
    attempts=INT,
    created_at_us=INT,
    finished_at_us=INT,
    gap_first=INT,  # not null: word that events from there to this place were dropped ...
    gap_reason=TEXT,  # ... unmatched, or as too much waited (`backlog`)
)

# One try of one delivery.
ATTEMPTS = _columns(
    attempted_at_us=INT,
    endpoint_id=INT,
    segment_id=INT,
    sequence=INT,
    run=INT,
    number=INT,
    outcome=TEXT,  # `delivered`, or why not
    status=INT,
    duration_ms=INT,
)

# Events owed to so many endpoints that their deliveries are being written in pieces.
FANOUTS = _columns(
    stream_id=INT, segment_id=INT, sequence=INT, endpoints=NUMBERS, total=INT, done=INT
)

# What clients were told over their connections, a row for each time that one began to listen.
LISTENERS = _columns(
    id=INT,  # rises with the time
    stream_id=INT,
    zone_id=INT,
    client_id=INT,
    client=TEXT,
    node=TEXT,  # the web process, named anew at every start
    transport=TEXT,  # websocket, sse, poll, lines, local; unrecorded: later ones have no row
    name=TEXT,  # of the listen, on a websocket
    start=TEXT,  # cursor, now, oldest, boot, time, gap, state, continued
    sequence=INT,  # it is told what comes after
    mask=INT,  # 64 bits, signed
    filter=TEXT,  # in predicate form; null: registrations, or not kept
    registrations=NUMBERS,
    request_digest=TEXT,  # equal for equal mask, filter and registrations
    delivered_sequence=INT,  # all that match up to here were delivered, as of `updated_at_us` ...
    delivered_events=INT,  # ... this many events
    started_at_us=INT,
    updated_at_us=INT,
    ended_at_us=INT,  # null: it goes on, or its process was killed
    end_reason=TEXT,
)

# Partitions of deliveries, attempts and listeners that left the database.
RETIRED = _columns(
    parent=TEXT,  # deliveries, attempts, listeners
    name=TEXT,
    segments_from=pa.list_(INT),  # ranges of segments that it held deliveries of ...
    segments_to=pa.list_(INT),  # ... to these
    day=TEXT,  # of attempts and listeners: 2026-11-22
    rows=INT,
    at_us=INT,
    archived=BOOL,  # its rows are in the inputs; else nobody can tell what they were
)

# Partitions of events, for what cleaning them gives back.
GROUPS = _columns(id=INT, current=BOOL, size_bytes=INT, live_bytes=INT, stored_bytes=INT)

TABLES: dict[str, pa.Schema] = {
    "streams": STREAMS,
    "segments": SEGMENTS,
    "live": LIVE,
    "producers": PRODUCERS,
    "versions": VERSIONS,
    "types": TYPES,
    "suspensions": SUSPENSIONS,
    "clients": CLIENTS,
    "endpoints": ENDPOINTS,
    "deliveries": DELIVERIES,
    "attempts": ATTEMPTS,
    "fanouts": FANOUTS,
    "listeners": LISTENERS,
    "retired": RETIRED,
    "groups": GROUPS,
}
EVENTS_FOLDER = "events"  # of the inputs: <segment id>.parquet
