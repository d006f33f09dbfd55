"""The hub's Prometheus metrics. A name ends in its unit; label sets are bounded. Plain module.

With PROMETHEUS_MULTIPROC_DIR set, as under `manage.py up`, `/metrics` of any web process covers all
processes.
"""

import os
import re
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
if os.environ.get(FOLDER) == "":  # the library would take "" for the current folder
    del os.environ[FOLDER]

from prometheus_client import (  # noqa: E402 - it reads the variable when imported
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    generate_latest,
    multiprocess,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST.encode()
# gauges, by how the values of several processes are combined
_sum = partial(Gauge, multiprocess_mode="livesum")
_max = partial(Gauge, multiprocess_mode="livemax")
_newest = partial(Gauge, multiprocess_mode="livemostrecent")


class CountedHistogram(Histogram):
    """A histogram that can observe a value several times at once."""

    def observe_times(self, value: float, times: int) -> None:
        """Observe the value so many times."""
        self._sum.inc(value * times)
        for bound, bucket in zip(self._upper_bounds, self._buckets, strict=True):
            if value <= bound:
                bucket.inc(times)
                return


APPENDED = Counter("eventhub_appended_events", "Events appended to the log by the emit route.")
APPEND_BATCH = Histogram(
    "eventhub_append_batch_events",
    "Events in one transaction of the group commit.",
    buckets=(0, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000),
)
DUPLICATES = Counter(
    "eventhub_duplicate_events", "Events that a producer sent again and that were already stored."
)
REQUESTS = Counter("eventhub_http_requests", "Requests of the hot routes.", ["route", "status"])
QUICK_EMITS = Counter(
    "eventhub_quick_emits", "Emits that repeated the head of one before on their connection."
)


@cache
def http_requests(route: str, status: int) -> Counter:
    """Return the counter of a route and status, cached because the look-up costs more than the
    count.
    """
    return REQUESTS.labels(route=route, status=str(status))


MCP_REQUESTS = Counter(
    "eventhub_mcp_requests", "Requests of MCP clients, by method.", ["method", "outcome"]
)
MCP_FAREWELLS = Counter(
    "eventhub_mcp_farewells", "Attempts to say that an MCP subscription ended.", ["outcome"]
)
REFUSED = Counter("eventhub_refused", "Requests and messages refused, by error code.", ["code"])
SOCKETS = _sum("eventhub_sockets", "Open websockets and responses of the listen routes.")
LISTENERS = _sum("eventhub_listeners", "Open listeners.")
CONNECTED_SESSIONS = _sum(
    "eventhub_connected_sessions", "Sessions that are connected.", ["transport"]
)
PULLS = Counter("eventhub_pulls", "Pulls of sessions.")
PULLED = Counter("eventhub_pulled_events", "Events handed out to pulls, each time.")
REDELIVERED = Counter(
    "eventhub_redelivered_events", "Events handed out again because they were not acknowledged."
)
SKIPPED = Counter(
    "eventhub_skipped_events",
    "Events that sessions skipped, because they were handed out as often as allowed.",
)
CLAIMS = _newest("eventhub_claimed_events", "Events handed out to sessions, not acknowledged.")
SENT_EVENTS = Counter("eventhub_sent_events", "Events sent to listeners.")
SENT_BYTES = Counter(
    "eventhub_sent_bytes", "Bytes of frames sent to listeners, before compression."
)
EXPIRED = Counter("eventhub_expired_events", "Events not sent because they had expired.")
OUT_OF_ORDER = Counter(
    "eventhub_out_of_order_events",
    "Events delivered to sessions out of the order that was requested.",
    ["reason"],
)
SLOW_READERS = Counter(
    "eventhub_slow_readers", "Slow consumers disconnected with a position to resume from."
)
GAPS = Counter("eventhub_gaps", "Listeners answered with gap or segment_mismatch.", ["code"])
RING_READS = Counter(
    "eventhub_ring_reads", "Batches served to listeners, by the tier they were read from.", ["tier"]
)
KEY_LOOKUPS = Counter("eventhub_key_lookups", "Credentials looked up in the database.")

FORWARDED = Counter("eventhub_forwarded_events", "Events matched for callbacks.")
DELIVERIES = Counter("eventhub_deliveries", "Deliveries written by forwarders.")
FANOUTS = Counter("eventhub_fanouts", "Events whose deliveries were written in several batches.")
LEASES = _sum("eventhub_forward_leases", "Streams leased by forwarders.")
LEASE_THREAD_RENEWALS = Counter(
    "eventhub_forward_lease_thread_renewals",
    "Lease renewals by a forwarder's thread while matching one event blocked its event loop.",
)
LEASES_LOST = Counter("eventhub_forward_leases_lost", "Leases that expired without a release.")
FORWARD_BUILDS = Counter(
    "eventhub_forward_builds", "Matchers of streams rebuilt from the tables.", ["reason"]
)
FORWARD_LAG_EVENTS = _max(
    "eventhub_forward_lag_events", "Events not yet matched for callbacks.", ["stream"]
)
FORWARD_LAG_S = _max(
    "eventhub_forward_lag_seconds",
    "Age of the oldest event not yet matched for callbacks.",
    ["stream"],
)
PATTERN_GROUPS = _sum("eventhub_pattern_groups", "Pattern groups leased by forwarders.")
PATTERN_GROUPS_STOPPED = _sum(
    "eventhub_pattern_groups_stopped", "Pattern groups that run no pattern, because of a fault."
)
PATTERN_MEMORY_BYTES = _max(
    "eventhub_pattern_memory_bytes", "Estimated memory of the partial matches of one forwarder."
)
PATTERN_FILTERS = _sum("eventhub_pattern_filters", "Distinct filters of the patterns of groups.")
PATTERN_EVENTS = Counter("eventhub_pattern_events", "Events consumed by pattern groups.")
PATTERN_EVALUATIONS = Counter(
    "eventhub_pattern_evaluations", "Tests evaluated for the filters of patterns."
)
PATTERN_OUTPUTS = Counter("eventhub_pattern_outputs", "Events that patterns caused.")
PATTERN_STATE_BYTES = _max("eventhub_pattern_state_bytes", "Size of a group's last snapshot.")
PATTERN_LAG_EVENTS = _max("eventhub_pattern_lag_events", "Events that a group has not consumed.")
PATTERN_LAG_S = _max(
    "eventhub_pattern_lag_seconds",
    "Age of the oldest event that a group has not consumed, or output that it has not written.",
)
MATCH_WORK = Counter(
    "eventhub_match_work",
    "Work done to match events, by stream, strategy and kind of work.",
    ["stream", "strategy", "work"],
)
CALLBACK_ATTEMPTS = Counter("eventhub_callback_attempts", "Callback attempts.", ["outcome"])
CALLBACK_LATENCY = CountedHistogram(
    "eventhub_callback_latency_seconds",
    "From the append of an event to the acknowledgement of its callback.",
    buckets=(
        *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        *(300, 1_800, 7_200, 18_000, 36_000, 86_400, 259_200),
    ),
)
SINK_EVENTS = Counter(
    "eventhub_sink_events", "Events given to sinks, by the attempt's outcome.", ["kind", "outcome"]
)
CALLBACK_CANCELLED = Counter(
    "eventhub_callback_cancelled",
    "Deliveries cancelled because their endpoint was deleted, or is not to get the event any more.",
)
CALLBACK_DEAD_LETTERED = Counter(
    "eventhub_callback_dead_lettered", "Deliveries dead-lettered at the end of their schedule."
)
ENDPOINT_STATUSES = ("healthy", "failing", "disabled")
CALLBACK_PENDING = _newest(
    "eventhub_callback_pending", "Pending deliveries, by the status of endpoints.", ["endpoints"]
)
CALLBACK_DEAD = _newest(
    "eventhub_callback_dead_letters", "Dead letters, by the status of endpoints.", ["endpoints"]
)
BACKLOG_DROPPED = Counter(
    "eventhub_backlog_dropped", "Deliveries dropped because a backlog passed its bound.", ["bound"]
)
BACKLOG_EVENTS = _newest("eventhub_backlog_events", "Pending deliveries of the whole hub.")
BACKLOG_BYTES = _newest(
    "eventhub_backlog_bytes", "Approximate size of pending deliveries with their events."
)
CALLBACK_LATE_RESULTS = Counter(
    "eventhub_callback_late_results", "Callbacks whose result came after the claim had expired."
)
CALLBACK_EXPIRED = Counter(
    "eventhub_callback_expired", "Deliveries not posted because their event had expired."
)
CALLBACK_FAILED_PROBES = Counter(
    "eventhub_callback_failed_probes", "Failed probes of endpoints whose circuit is open."
)
CALLBACK_FREED = Counter(
    "eventhub_callback_freed", "Claims of workers without a heartbeat that were freed for others."
)
CALLBACK_UNITS = Counter(
    "eventhub_callback_units", "Units of delivery work, by what started them.", ["by"]
)
CALLBACK_UNIT_RETRIES = Counter(
    "eventhub_callback_unit_retries", "Retries of units of delivery work that failed."
)
CALLBACK_SLOTS = _sum("eventhub_callback_slots", "Callback requests under way in all workers.")
EXPLAIN_S = Histogram(
    "eventhub_explain_seconds",
    "Duration of filter checks, explanations, searches for matches and dry runs.",
    ["operation"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
INDEX_OPENED = Counter(
    "eventhub_index_opened",
    "Match indexes that forwarders opened or swapped in for an older one.",
    ["how"],
)
INDEX_REFUSED = Counter(
    "eventhub_index_refused", "Match indexes that forwarders refused, by reason.", ["reason"]
)
INDEX_EPOCH = _max(
    "eventhub_index_epoch",
    "Epoch of the match index that a stream is matched with; 0: none.",
    ["stream"],
)
INDEX_VERSIONS = _sum(
    "eventhub_index_versions",
    "Registration versions of a stream: in its match index, in memory, ended since.",
    ["stream", "where"],
)
INDEX_BUILDS = Counter(
    "eventhub_index_builds", "Builds of match indexes by workers, by outcome.", ["outcome"]
)
INDEX_BUILD_S = Histogram(
    "eventhub_index_build_seconds",
    "Duration of completed builds of match indexes.",
    buckets=(0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3_600),
)

JOB_RUNS = Counter(
    "eventhub_job_runs", "Job runs executed by workers, by outcome.", ["job", "outcome"]
)
JOB_RUN_S = Histogram(
    "eventhub_job_run_seconds",
    "Duration of completed job runs.",
    ["job"],
    buckets=(1, 5, 10, 30, 60, 120, 300, 900, 3_600, 4 * 3_600),
)

REPLAY_DELIVERIES = Counter(
    "eventhub_replay_deliveries",
    "Deliveries that replay runs wrote or made pending again.",
    ["source"],
)
REPLAY_RUNS = Counter("eventhub_replay_runs", "Replay runs that ended, by outcome.", ["outcome"])

ARCHIVED_EVENTS = Counter("eventhub_archived_events", "Events written to the archive.")
ARCHIVED_BYTES = Counter("eventhub_archived_bytes", "Bytes of files written to the archive.")
ARCHIVE_FAILURES = Counter(
    "eventhub_archive_failures", "Segments that could not be archived, by error code.", ["reason"]
)
ARCHIVE_CONFIGURED = _newest(
    "eventhub_archive_configured", "1 if an archive is configured, else 0."
)
ARCHIVE_LAG_S = _newest(
    "eventhub_archive_lag_seconds",
    "Time since the oldest segment that waits for the archive was sealed.",
)
ARCHIVE_WAITING_EVENTS = _newest(
    "eventhub_archive_waiting_events", "Events in sealed segments that wait for the archive."
)

HEALTH = _newest(
    "eventhub_health", "1 while a component of the hub works or is not used, else 0.", ["component"]
)

STORAGE_USED_BYTES = _newest("eventhub_storage_used_bytes", "Disk space used by the hub's data.")
STORAGE_QUOTA_BYTES = _newest("eventhub_storage_quota_bytes", "The hub's quota; 0: none.")
QUOTAS_REACHED = _newest(
    "eventhub_quotas_reached", "Quotas of zones and clients that are reached now.", ["kind"]
)
APPLICATIONS = _newest("eventhub_applications", "Applications by state.", ["state"])
RESENT = Counter("eventhub_resent_events", "Events that readers of websockets requested again.")
TRACES = Counter("eventhub_traces", "API calls appended as events to the streams of traces.")
TRACES_DROPPED = Counter(
    "eventhub_traces_dropped", "API calls whose events were dropped, by reason.", ["reason"]
)
MEMBERS = _newest("eventhub_members", "Processes of the hub by kind.", ["kind"])
PRESENT_CLIENTS = _newest(
    "eventhub_present_clients", "Connected clients of zones with presence, as announced."
)
MISSED_HEARTBEATS = Counter(
    "eventhub_missed_heartbeats", "Heartbeats of monitored applications that were missed."
)
SOURCE_REQUESTS = Counter(
    "eventhub_source_requests",
    "Requests of providers to sources, by outcome.",
    ["provider", "outcome"],
)
CONNECTOR_ROWS = Counter(
    "eventhub_connector_rows",
    "Rows that connectors read, by outcome.",
    ["kind", "outcome"],
)
CONNECTORS = _sum(
    "eventhub_connectors", "Connectors that this process runs, by state.", ["kind", "state"]
)
CONNECTOR_LAG_ROWS = _max(
    "eventhub_connector_lag_rows",
    "The most rows that a connector has still to read, counted up to a bound.",
    ["kind"],
)
TIMERS = _newest("eventhub_timers", "Timers of all zones.")
TIMERS_DUE = _newest("eventhub_timers_due", "Timers that are due and have not fired yet.")
DELAYED = Counter("eventhub_delayed_events", "Delayed events that emits have stored.")
TIMERS_FIRED = Counter("eventhub_timers_fired", "Fires of timers.")
TIMER_LATENESS = Histogram(
    "eventhub_timer_lateness_seconds",
    "From the time for which a timer fires to the commit of its event.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600),
)
DISK_FREE_BYTES = Gauge(
    "eventhub_disk_free_bytes",
    "Free space on the disk that holds the data folder.",
    multiprocess_mode="livemin",
)
DELETIONS = Counter("eventhub_deletions", "Resources deleted after their grace period.", ["kind"])
ERASED_EVENTS = Counter(
    "eventhub_erased_events", "Events of deleted streams that were removed from the database."
)
DROPPED_EVENTS = Counter(
    "eventhub_dropped_events", "Events dropped with their segments, by reason.", ["reason"]
)
CLEANED_BYTES = Counter(
    "eventhub_cleaned_bytes", "Stored bytes copied so that their partition could be dropped."
)
PARTITIONS_DROPPED = Counter("eventhub_dropped_partitions", "Dropped partitions of events.")


class SentTally:
    """Counts sent frames in plain numbers, because a shared metric costs more than a frame; `flush`
    adds them to the metrics.
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
    """Return the metrics as text: of this process, or of all processes that share the folder."""
    if not shared:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    _ProcessesCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


class _ProcessesCollector(multiprocess.MultiProcessCollector):
    """Collects from the files of all processes. The gauges of a process end with it: a killed
    forwarder has no lag. Its counters stay.
    """

    def collect(self) -> Iterable[Metric]:
        files = [str(file) for file in Path(self._path).glob("*.db") if _counts(file)]
        found: Iterable[Metric] = self.merge(files)  # type: ignore[no-untyped-call]
        return found


def _counts(file: Path) -> bool:
    gauge = re.fullmatch(r"gauge_live[a-z]*_([0-9]+)\.db", file.name)
    return gauge is None or Path("/proc", gauge[1]).exists()


def remove_files() -> None:
    """Remove the files of this process, which counts nothing."""
    if folder := os.environ.get(FOLDER):
        for file in Path(folder).glob(f"*_{os.getpid()}.db"):
            file.unlink()


def open_files() -> None:
    """Open the files of a forked process, so that it has all metrics before it counts."""
    APPENDED._value.get()
