"""Every metric of the hub, with its unit in its name; label sets are bounded. Plain module.

With PROMETHEUS_MULTIPROC_DIR set, as `manage.py up` does, `/metrics` of any web process answers for
all of them.
"""

import os
from functools import cache

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
if os.environ.get(FOLDER) == "":  # no folder; the library would take it for the current one
    del os.environ[FOLDER]

from prometheus_client import (  # noqa: E402 - it looks at the variable at once
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST.encode()

APPENDED = Counter("eventhub_appended_events", "Events appended to the log by the emit door.")
APPEND_BATCH = Histogram(
    "eventhub_append_batch_events",
    "Events in one transaction of the group commit.",
    buckets=(0, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000),
)
DUPLICATES = Counter(
    "eventhub_duplicate_events", "Events that a producer sent again and that were there already."
)
REQUESTS = Counter("eventhub_door_requests", "Requests of the hot doors.", ["door", "status"])


@cache
def door_requests(door: str, status: int) -> Counter:
    """The counter of one door and status; looked up once, because the look-up costs more than the
    count.
    """
    return REQUESTS.labels(door=door, status=str(status))


REFUSED = Counter("eventhub_refused", "Requests and messages refused, by error code.", ["code"])
SOCKETS = Gauge(
    "eventhub_sockets",
    "Open websockets and answers of the listen doors.",
    multiprocess_mode="livesum",
)
LISTENS = Gauge("eventhub_listens", "Open listens.", multiprocess_mode="livesum")
SENT_EVENTS = Counter("eventhub_sent_events", "Events sent to listeners.")
SENT_BYTES = Counter(
    "eventhub_sent_bytes", "Bytes of frames sent to listeners, before compression."
)
EXPIRED = Counter("eventhub_expired_events", "Events skipped at delivery because they had expired.")
SLOW_READERS = Counter("eventhub_slow_readers", "Readers told to resume because they took nothing.")
GAPS = Counter("eventhub_gaps", "Listens answered with gap or segment_mismatch.", ["code"])
RING_READS = Counter(
    "eventhub_ring_reads", "Batches served to listeners, by where they came from.", ["tier"]
)
KEY_LOOKUPS = Counter("eventhub_key_lookups", "Credentials looked up in the database.")

FORWARDED = Counter("eventhub_forwarded_events", "Events matched for callbacks.")
DELIVERIES = Counter("eventhub_deliveries", "Deliveries written by forwarders.")
FANOUTS = Counter("eventhub_fanouts", "Events whose deliveries were written in pieces.")
LEASES = Gauge(
    "eventhub_forward_leases", "Streams that forwarders hold.", multiprocess_mode="livesum"
)
LEASES_RENEWED_IN_BACKGROUND = Counter(
    "eventhub_forward_background_renewals",
    "Renewals by a forwarder's thread, while one event was matched for long.",
)
LEASES_LOST = Counter("eventhub_forward_leases_lost", "Leases that ended without being released.")
FORWARD_BUILDS = Counter(
    "eventhub_forward_builds", "Matchers of streams made anew from the tables.", ["reason"]
)
FORWARD_LAG_EVENTS = Gauge(
    "eventhub_forward_lag_events",
    "Events that are not matched for callbacks yet.",
    ["stream"],
    multiprocess_mode="livemax",
)
FORWARD_LAG_S = Gauge(
    "eventhub_forward_lag_seconds",
    "Age of the oldest event that is not matched for callbacks yet.",
    ["stream"],
    multiprocess_mode="livemax",
)
MATCH_WORK = Counter(
    "eventhub_match_work",
    "What matching events takes, by stream, strategy and kind of work.",
    ["stream", "strategy", "work"],
)
CALLBACK_ATTEMPTS = Counter("eventhub_callback_attempts", "Callbacks tried.", ["outcome"])
CALLBACK_CANCELLED = Counter(
    "eventhub_callback_cancelled", "Deliveries cancelled because their endpoint was deleted."
)
CALLBACK_DEAD_LETTERED = Counter(
    "eventhub_callback_dead_lettered", "Deliveries given up after their last try failed."
)
BACKLOG_DROPPED = Counter(
    "eventhub_backlog_dropped", "Deliveries dropped because too much waited.", ["bound"]
)
BACKLOG_EVENTS = Gauge(
    "eventhub_backlog_events",
    "Deliveries that wait for endpoints.",
    multiprocess_mode="livemostrecent",
)
BACKLOG_BYTES = Gauge(
    "eventhub_backlog_bytes",
    "About what they take, with their events.",
    multiprocess_mode="livemostrecent",
)
CALLBACK_LATE_RESULTS = Counter(
    "eventhub_callback_late_results", "Callbacks whose result came after the claim had ended."
)
CALLBACK_EXPIRED = Counter(
    "eventhub_callback_expired", "Deliveries that were not posted because their event expired."
)
CALLBACK_FAILED_PROBES = Counter(
    "eventhub_callback_failed_probes", "Single tries of endpoints that back off, and failed again."
)
CALLBACK_FREED = Counter(
    "eventhub_callback_freed", "Claims of workers that fell silent, freed for the others."
)
CALLBACK_UNITS = Counter(
    "eventhub_callback_units", "Units of delivery work, by what began them.", ["by"]
)
CALLBACK_UNIT_RETRIES = Counter(
    "eventhub_callback_unit_retries", "Units of delivery work that failed and are tried again."
)
CALLBACK_SLOTS = Gauge(
    "eventhub_callback_slots", "Callbacks under way in all workers.", multiprocess_mode="livesum"
)
UNDERSTAND_S = Histogram(
    "eventhub_understand_seconds",
    "Time of checks, explanations, searches for matches and dry runs.",
    ["what"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
INDEX_TAKEN = Counter(
    "eventhub_index_taken",
    "Match indexes that forwarders opened, or took for an older one.",
    ["how"],
)
INDEX_REFUSED = Counter(
    "eventhub_index_refused", "Match indexes that forwarders did not use, by reason.", ["reason"]
)
INDEX_EPOCH = Gauge(
    "eventhub_index_epoch",
    "The epoch of the match index that a stream is matched from; 0: none.",
    ["stream"],
    multiprocess_mode="livemax",
)
INDEX_VERSIONS = Gauge(
    "eventhub_index_versions",
    "Versions of registrations of a stream: in its match index, in memory, ended since.",
    ["stream", "where"],
    multiprocess_mode="livesum",
)
INDEX_BUILDS = Counter(
    "eventhub_index_builds", "Match indexes that workers built, or could not.", ["outcome"]
)
INDEX_BUILD_S = Histogram(
    "eventhub_index_build_seconds",
    "Time of the builds of match indexes that workers finished.",
    buckets=(0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3_600),
)

JOB_RUNS = Counter(
    "eventhub_job_runs", "Runs of jobs that workers did, by how they ended.", ["job", "outcome"]
)
JOB_RUN_S = Histogram(
    "eventhub_job_run_seconds",
    "Time of runs of jobs that completed.",
    ["job"],
    buckets=(1, 5, 10, 30, 60, 120, 300, 900, 3_600, 4 * 3_600),
)

ARCHIVED_EVENTS = Counter("eventhub_archived_events", "Events written to the archive.")
ARCHIVED_BYTES = Counter("eventhub_archived_bytes", "Bytes of files written to the archive.")
ARCHIVE_FAILURES = Counter(
    "eventhub_archive_failures", "Segments that could not be archived, by error code.", ["reason"]
)
ARCHIVE_CONFIGURED = Gauge(
    "eventhub_archive_configured",
    "1 if there is an archive, else 0.",
    multiprocess_mode="livemostrecent",
)
ARCHIVE_LAG_S = Gauge(
    "eventhub_archive_lag_seconds",
    "How long the oldest sealed segment waits that is to be archived.",
    multiprocess_mode="livemostrecent",
)
ARCHIVE_WAITING_EVENTS = Gauge(
    "eventhub_archive_waiting_events",
    "Events of sealed segments that are to be archived.",
    multiprocess_mode="livemostrecent",
)

HEALTH = Gauge(
    "eventhub_health",
    "1 while a component of the hub works, or is not used; else 0.",
    ["component"],
    multiprocess_mode="livemostrecent",
)

STORAGE_USED_BYTES = Gauge(
    "eventhub_storage_used_bytes",
    "What the hub's data takes on the disk.",
    multiprocess_mode="livemostrecent",
)
STORAGE_QUOTA_BYTES = Gauge(
    "eventhub_storage_quota_bytes",
    "The hub's quota; 0: none.",
    multiprocess_mode="livemostrecent",
)
DISK_FREE_BYTES = Gauge(
    "eventhub_disk_free_bytes",
    "Free space of the disk that holds the data folder.",
    multiprocess_mode="livemin",
)
DROPPED_EVENTS = Counter(
    "eventhub_dropped_events", "Events that left the database with their segments.", ["why"]
)
CLEANED_BYTES = Counter(
    "eventhub_cleaned_bytes", "Stored bytes copied so that their partition could go."
)
GROUPS_DROPPED = Counter("eventhub_dropped_groups", "Partitions of events that went.")


class SentTally:
    """Counts frames in plain numbers, because a shared metric costs more than a frame;

    `flush` adds them up.
    """

    __slots__ = ("_bytes", "_events")

    def __init__(self) -> None:
        self._events = 0
        self._bytes = 0

    def add(self, events: int, size: int) -> None:
        self._events += events
        self._bytes += size

    def flush(self) -> None:
        SENT_EVENTS.inc(self._events)
        SENT_BYTES.inc(self._bytes)
        self._events = self._bytes = 0


SENT = SentTally()


def exposition(*, shared: bool) -> bytes:
    """All metrics as text: of this process, or of all processes that share the folder."""
    if not shared:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
