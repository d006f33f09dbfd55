"""The schemas of the input tables, which the hub exports before a job starts: Parquet files, one
folder per table. Plain module.

Times are integers, microseconds since 1970 UTC. All tables of a run belong to one snapshot of the
database.
"""

import pyarrow as pa

SYSTEM_ZONE = 0  # the zone id of the hub-wide stream
INT, TEXT, BOOL = pa.int64(), pa.string(), pa.bool_()
NUMBERS, TEXTS = pa.list_(INT), pa.list_(TEXT)


def _columns(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


# Stored streams; transient ones have no history.
STREAMS = _columns(
    id=INT,
    zone_id=INT,  # 0: the hub-wide stream `system`
    zone=TEXT,  # "": the hub-wide stream
    name=TEXT,
    head=INT,  # the last sequence
    forwarded=INT,  # the last sequence matched for callbacks; null: never forwarded
    needed=INT,  # the lowest sequence that a durable cursor still needs; null: none
    keyed=BOOL,
    archive=BOOL,
    hold=TEXT,
    on_lag=TEXT,
    retain_events=INT,
    retain_bytes=INT,
    retain_age_s=INT,
)

# All segments, including dropped ones.
SEGMENTS = _columns(
    id=INT,
    uuid=TEXT,
    stream_id=INT,
    partition_id=INT,
    first=INT,
    last=INT,  # recorded at sealing; the head for the open segment; first - 1 if empty
    bytes=INT,  # stored bytes, likewise
    sealed=BOOL,
    tier=TEXT,  # live, archived, dropped
    opened_at_us=INT,
    sealed_at_us=INT,
    removed_at_us=INT,
    removal_reason=TEXT,
    archived=BOOL,  # recorded as archived (and perhaps live as well)
    # where this job reads its rows: `export` (events/<id>.parquet of the inputs), `archive`, or
    # `none`: dropped, empty, not requested, or in an archive that this hub does not have
    source=TEXT,
    file=TEXT,  # path below the archive's URL; null: not archived, or no readable manifest
    file_bytes=INT,  # from the manifest ...
    file_sha256=TEXT,
    payload_sha256=TEXT,
    appended_min_us=INT,
    appended_max_us=INT,  # ... null without a manifest
    fault=TEXT,  # of the manifest: missing_manifest, bad_manifest, wrong_range; null: none
)

# The database's rows of segments that are live *and* archived; they are not exported. The table's
# key prevents duplicate sequences.
LIVE = _columns(
    segment_id=INT,
    events=INT,
    first=INT,  # lowest and highest sequence; null: no rows
    last=INT,
    bytes=INT,
    missing=NUMBERS,  # absent sequences, ascending; the first 1,000
)

# The rows of a segment (SegmentFile.batches); exported files have these columns.
EVENTS = _columns(sequence=INT, appended_at_us=INT, mask=INT, payload=pa.binary())

# The highest acknowledged number of each producer.
PRODUCERS = _columns(stream_id=INT, client=TEXT, incarnation=INT, highest_number=INT)

# The history of registrations: one row per version and stream.
VERSIONS = _columns(
    stream_id=INT,
    id=INT,
    registration_id=INT,
    number=INT,
    client_id=INT,
    client=TEXT,
    zone_id=INT,
    zone=TEXT,
    endpoint_id=INT,  # null: only for listeners
    language=TEXT,
    filter=TEXT,  # the source, as JSON
    since=INT,  # exclusive: the stream's last sequence when the version started
    until=INT,  # inclusive; null: still valid
    suspended=BOOL,  # the version itself is suspended and never matches
    group_id=INT,
    report=INT,  # 1: it has one; 2: it binds a variable; 3: both
    started_at_us=INT,
    ended_at_us=INT,
)

# Declared types, by which a filter on a type also matches its subtypes. An event that names a
# version was validated against it.
TYPES = _columns(
    zone_id=INT,
    domain=TEXT,
    type=TEXT,
    versions=INT,  # versions 1 to this one exist
    declared_us=NUMBERS,  # when each was declared; matchers learn of it some seconds later
    lineage=TEXTS,  # the type and its declared supertypes, nearest first
)

# Ranges of a stream in which a group of registrations matches nothing.
SUSPENSIONS = _columns(stream_id=INT, group_id=INT, since=INT, until=INT)

CLIENTS = _columns(id=INT, zone_id=INT, zone=TEXT, name=TEXT, groups=TEXTS)  # current groups

ENDPOINTS = _columns(
    id=INT,
    zone_id=INT,
    client_id=INT,
    client=TEXT,
    host=TEXT,  # of its URL; the rest may contain secrets
    ordered=BOOL,
    enabled=BOOL,
    deleted_at_us=INT,
)

# Deliveries of one event to one endpoint: attached partitions and archived ones.
DELIVERIES = _columns(
    endpoint_id=INT,
    segment_id=INT,
    sequence=INT,
    stream_id=INT,
    partition_id=INT,
    registrations=NUMBERS,  # ascending
    state=TEXT,  # pending, delivered, dead_lettered, cancelled, dropped, expired, discarded
    attempts=INT,
    created_at_us=INT,
    finished_at_us=INT,
    gap_first=INT,  # not null: a notice that events from here to `sequence` were dropped ...
    gap_reason=TEXT,  # ... unmatched, or because the backlog was too large (`backlog`)
)

# Attempts of deliveries.
ATTEMPTS = _columns(
    attempted_at_us=INT,
    endpoint_id=INT,
    segment_id=INT,
    sequence=INT,
    number=INT,
    outcome=TEXT,  # `delivered`, or why not
    status=INT,
    duration_ms=INT,
)

# Events with so many endpoints that their deliveries are written in batches.
FANOUTS = _columns(
    stream_id=INT, segment_id=INT, sequence=INT, endpoints=NUMBERS, total=INT, done=INT
)

# Listeners: subscriptions over one connection each, with what was delivered to them.
LISTENERS = _columns(
    id=INT,  # ascending in time
    stream_id=INT,
    zone_id=INT,
    client_id=INT,
    client=TEXT,
    node=TEXT,  # the web process; every start has a new name
    transport=TEXT,  # websocket, sse, poll, lines, local; unrecorded: later ones have no row
    name=TEXT,  # of the listener on its websocket
    start=TEXT,  # cursor, now, oldest, boot, time, gap, state, continued
    sequence=INT,  # exclusive: events after it are delivered
    mask=INT,  # 64 bits, signed
    filter=TEXT,  # in predicate form; null: registrations, or not recorded
    registrations=NUMBERS,
    request_digest=TEXT,  # equal for equal mask, filter and registrations
    delivered_sequence=INT,  # everything up to here was delivered as of `updated_at_us` ...
    delivered_events=INT,  # ... this many events
    started_at_us=INT,
    updated_at_us=INT,
    ended_at_us=INT,  # null: active, or its process was killed
    end_reason=TEXT,
)

# Dropped partitions of deliveries, attempts and listeners.
RETIRED = _columns(
    parent=TEXT,  # deliveries, attempts, listeners
    name=TEXT,
    segments_from=pa.list_(INT),  # ranges of the segments whose deliveries it held: from ...
    segments_to=pa.list_(INT),  # ... to
    day=TEXT,  # of attempts and listeners: 2026-11-22
    rows=INT,
    at_us=INT,
    archived=BOOL,  # the inputs contain its rows; otherwise they are unknown
)

# Partitions of events, with the sizes that decide on compaction.
EVENT_PARTITIONS = _columns(id=INT, current=BOOL, size_bytes=INT, live_bytes=INT, stored_bytes=INT)

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
    "event_partitions": EVENT_PARTITIONS,
}
EVENTS_FOLDER = "events"  # below the inputs: <segment id>.parquet
