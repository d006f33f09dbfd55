"""The bounds of the hub, each with its unit in its name and its reason in a comment. Plain module.

Plain numbers; nothing imports from here by `*`. A constant that concerns one algorithm only is in
its module.
"""

# --- emit ---
BODY_BYTES_MAX = 8 * 1024 * 1024  # of one request: 1,000 events of 8 KiB
# events in one request; 1,000 rows commit in 3 ms, so nobody waits long behind a batch
BATCH_EVENTS_MAX = 1_000
EVENT_BYTES_MAX = 1024 * 1024  # stored bytes; a ring of 32 MiB still holds 32 of the largest
BODY_TIMEOUT_S_MAX = 20  # to receive a body; a slow one holds a connection, not a worker
HEAD_BYTES_MAX = 64 * 1024  # request line and headers, or what follows the last chunk
HEADERS_TIMEOUT_S_MAX = 10  # to receive headers, also on a connection that sends nothing
JSON_DEPTH_MAX = 32  # nesting of attributes or body; deeper JSON is nearly always an attack
REFERENCE_CHARS_MAX = 4_096  # of a reference to a remote object; CORBA's IOR texts are long
ATTRIBUTES_BYTES_MAX = 64 * 1024  # encoded; every matcher reads them for every event
EVENT_LIFETIME_MS_MAX = 1_000 * 365 * 86_400_000  # a thousand years
ATTRIBUTES_COUNT_MAX = 256  # names at the top level
ATTRIBUTES_VALUES_MAX = 1_000  # including those in lists and objects; every filter may test each
# A body that filters read as `data` (the policy `filterable_data`). GitHub's payloads have up to
# 27 KB and 561 values: the median takes 11 µs to parse, the largest 43 µs.
DATA_BYTES_MAX = 64 * 1024
DATA_VALUES_MAX = 2_000  # including those in lists and objects; every filter may test each
DATA_PARSED_MAX = 128  # bodies that a process retains for further matchers; at the bounds 30 MiB
NAME_CHARS_MAX = 200  # of streams, channels, clients, zones
TEXT_CHARS_MAX = 1_024  # of envelope texts: domain, type, key, node, correlation, ...
LIST_ITEMS_MAX = 64  # in application, depends, destinations, audience
ENVIRONMENT_BYTES_MAX = 16 * 1024  # encoded annotations

# Slots of the emit route in one web process, for requests that are parsed and appended at the same
# time. Other requests wait in fair order, for about one group commit of this many: some 10 ms.
EMIT_SLOTS = 64
EMIT_SLOTS_PER_CLIENT = 16  # while others emit too: they wait for at most this much of one client
CONTENTION_S = 5.0  # a client counts as alone when no other one came for this long
EMIT_BYTES_PER_SLOT = 16 * 1024  # a request takes one more slot for each of these in its body
# slots that may be waited for in one process, by all and by one client: bodies of 128 and 32 MiB
EMIT_WAITING_MAX = 8_192
EMIT_WAITING_PER_CLIENT_MAX = 2_048  # a quarter
EMIT_WAIT_S_MAX = 2.0  # then the answer is 429 or 503: a queue of seconds helps nobody

# --- quotas of tenants ---
QUOTA_CHECK_INTERVAL_S = 1.0  # between two looks at who has reached a quota ...
QUOTA_CHECK_SHARE = 20.0  # ... with pauses of at least this many times what the last one took
QUOTA_SHARE_BELOW = 0.95  # of a quota: below it, a reached one is no longer reached
QUOTA_REACHED_S_MIN = 5.0  # then that is announced: small quotas are reached and left all the time
STORED_BYTES_QUOTA_MIN = 1024 * 1024  # a few segments
# tokens of a quota of events per second that a process takes in advance, as seconds at its rate
EMIT_RATE_LEASE_S = 0.1
EMIT_RATE_HELD_S = 1.0  # tokens that a process has not spent within it are lost
EMIT_REFUSAL_PAUSE_S = (0.5, 1.5)  # before a refusal by a quota, for which nothing is read
EMIT_REFUSALS_PER_S = 100  # of a client in one process; if more wait, the pause is longer ...
EMIT_REFUSAL_PAUSE_S_MAX = 4.0  # ... up to this: clients and proxies wait longer for an answer
EMIT_RATE_MAX = 10_000_000  # events per second of a quota; more than one hub stores

# --- types ---
TYPE_SCHEMA_BYTES_MAX = 16 * 1024  # one definition, as JSON; people read it
TYPE_SCHEMA_NODES_MAX = 1_000  # schemas in it, references expanded: bounds the cost of one value
TYPE_SCHEMA_DEPTH_MAX = 64  # steps of a path into it; attributes end at JSON_DEPTH_MAX
TYPE_SCHEMA_VALUES_MAX = 10_000  # in its enums and the like, expanded; 16 KiB hold no more
TYPE_PATTERN_BYTES_MAX = 64 * 1024  # of a compiled pattern
TYPE_PATTERNS_MAX = 100  # in one definition, expanded
TYPE_WORK_UNCOUNTED_MAX = 20_000  # units of about 40 ns; a small event costs no counting
TYPE_WORK_PER_SLICE_MAX = 100_000  # 4 ms, then other work runs
TYPE_WORK_PER_EVENT_MAX = 1_000_000  # 40 ms, during which nothing else runs
TYPE_WORK_PER_REQUEST_MAX = 20_000_000  # 0.8 s of one core; BATCH_EVENTS_MAX of uncounted work
TYPE_VERSIONS_PER_ZONE_MAX = 1_000  # of all types together: at most 16 MB in each process
TYPE_PARENTS_MAX = 8  # supertypes of one type: each is one more validation
TYPE_BREAKS_SHOWN_MAX = 20  # incompatibilities listed for a version that is refused
TYPE_ZONES_CACHED_MAX = 1_000  # in one process

# --- codecs ---
CE_HEADERS_BYTES_MAX = 8 * 1024  # of a binary CloudEvent; what servers accept in all headers
XML_DEPTH_MAX = 8  # FOX's schema of an event has four levels
XML_ELEMENTS_MAX = 256  # the schema's own, and two lists of LIST_ITEMS_MAX

# --- append ---
APPEND_EVENTS_MAX = 4_000  # in one transaction of the group commit: about 10 ms
APPEND_BYTES_MAX = 16 * 1024 * 1024  # in one transaction; bounds the memory of the statement
# waiting in one process; beyond it emit answers 503 `overloaded`
APPEND_WAITING_EVENTS_MAX = 50_000
APPEND_WAITING_BYTES_MAX = 128 * 1024 * 1024
APPEND_WAITING_EVENTS_PER_CLIENT_MAX = 25_000  # beyond it: 429 for that client alone
STATEMENT_TIMEOUT_S_MAX = 4  # the server gives up before the hub does: then nothing was stored
# between two statements of a transaction: locks of a stopped process end before others time out
TRANSACTION_IDLE_S_MAX = 3
# the same for a transaction that only reads, and may read a remote archive meanwhile
READING_IDLE_S_MAX = 30
APPEND_TIMEOUT_S_MAX = 5  # one transaction; a stopped PostgreSQL gives 503, not a hanging caller
STATEMENT_LOOK_S = 0.1  # between two looks at a connection that announces no answer
PRODUCER_WINDOW = 4_096  # recent numbers stored per producer; at least four times BATCH_EVENTS_MAX
# incarnations stored at a time; the least recently used expire first
PRODUCERS_PER_CLIENT_STREAM_MAX = 1_000
PRODUCER_EXPIRY_S = 7 * 24 * 3600  # a superseded incarnation unused for this long is forgotten
STORED_INTERVAL_S = 3.0  # between two NOTIFY of streams that no process follows
NOTIFY_INTERVAL_S = 0.002  # between two NOTIFY of one stream, at least

LOG_REPEAT_S = 10.0  # between two log lines of a failure that repeats
CONNECT_TIMEOUT_S = 3  # one attempt to reach PostgreSQL
RECONNECT_PAUSE_S = 0.2  # after a failed attempt, during which callers get 503 at once
RECONNECT_PAUSE_S_MAX = 1.6  # where no caller waits: each pause is twice as long, up to this

# --- segments ---
SEGMENT_EVENTS_DEFAULT = 100_000
SEGMENT_EVENTS_MAX = 10_000_000
SEGMENT_BYTES_DEFAULT = 64 * 1024 * 1024
SEGMENT_BYTES_MAX = 4 * 1024 * 1024 * 1024
PARTITION_BYTES_MAX = 1024 * 1024 * 1024  # beyond it rolled segments go to the next partition
PARTITIONS_LIVE_MAX = 1_000  # 4,000 cost 278 ms on a query without the key
PRODUCER_SWEEP_INTERVAL_S = 600.0  # between two searches for expired producers
STREAMS_PER_ZONE_MAX = 10_000

# --- policies of streams ---
SEGMENT_AGE_S_MAX = 366 * 24 * 3600  # an audit stream that rolls once a year
RETAIN_EVENTS_MAX = 10**15  # every number up to here is exact in JavaScript too
RETAIN_BYTES_MAX = 1 << 50  # 1 PiB, more than one hub has
RETAIN_AGE_S_MAX = 100 * 366 * 24 * 3600  # what an archive law may require
REQUEST_ID_CHARS_MAX = 128  # of a caller; a longer one is replaced
AUDIT_EXAMINED_MAX = 5_000  # events for one page of the audit trail: to decode all takes some 0.1 s
BACKWARD_READ_EVENTS = 500  # read at a time for it
ACTION_CHARS_MAX = 200  # the id of an action, in a header and in each event that it causes
RESTATE_KEYS_MAX = 200  # announced again in one transaction: it locks the head for some 10 ms

# --- deletion ---
DELETION_GRACE_S_DEFAULT = 7 * 24 * 3600  # a mistake is noticed within a week
DELETION_GRACE_S_MAX = 90 * 24 * 3600  # longer, it is a plan and no deletion
DELETION_RUN_S_MAX = 20.0  # one run of the task, which then makes way for others
DELETIONS_AT_ONCE = 100  # looked up by one run; the next one finds more
ERASE_ROWS_MAX = 5_000  # removed or examined by one statement: some 50 ms
END_REGISTRATIONS_MAX = 500  # of one client in one transaction, under the lock of its session

# --- retention ---
PARTITION_BYTES_MIN = 4 * 1024 * 1024  # a smaller partition is mostly its own index pages
PARTITIONS_PER_CAPACITY = 16  # in a quota or on a disk: one dropped partition is a small part
RETAIN_CHECK_INTERVAL_S = 1.0  # between two checks of retention while space is sufficient
RETAIN_IDLE_INTERVAL_S = 10.0  # the same while nothing was stored for RETAIN_IDLE_AFTER_S
MEASURE_INTERVAL_S = 10.0  # between two measurements of the storage that only the metrics need
CLEAN_INTERVAL_S = 5.0  # between two looks for partitions to clean while there is space
RETAIN_IDLE_AFTER_S = 10.0  # segments stored within it may still be due
RETAIN_BUSY_INTERVAL_S = 0.25  # the same while the disk is nearly full
RETAIN_CHECK_INTERVAL_S_MIN = 0.02  # the same just below where emits are refused
RETAIN_GROWTH_BYTES_PER_S = 64 * 1024 * 1024  # assumed growth of the data, indexes included
# of the free space below the quota: what one process may store before it measures again, however
# late; other processes, and the tables' own pages, share the rest
QUOTA_SHARE_UNMEASURED = 0.2
QUOTA_MEASURE_S_MAX = 5.0  # an emit waits at most this long for that measurement
EVENT_OVERHEAD_BYTES = 200  # of an event's row and index entries, in addition to its stored bytes
RETAIN_SYSTEM_S_MIN = 3_600.0  # a segment of `system` stays this long despite the quota
RETAIN_SEGMENTS_MAX = 1_000  # dropped in one transaction: updated rows, and events of `system`
RETAIN_STREAMS_MAX = 200  # sealed in one transaction, which locks all their heads
RETAIN_FAULT_PAUSE_S = 1.0  # after the database refused or was unavailable
QUOTA_BYTES_MIN = 32 * 1024 * 1024  # below it the partitions' own pages are a large part
QUOTA_SHARE_ACT = 0.80  # of the quota: above it the oldest segments are dropped ...
QUOTA_SHARE_GOAL = 0.70  # ... until this much is used
QUOTA_EPISODE_S = 600.0  # without a drop, after which the next one is announced again
QUOTA_SHARE_CLEAN = 0.88  # up to it cleaning may copy, which frees more in the end
QUOTA_SHARE_CLEAN_MIN = 0.04  # may be copied in any case: a few live rows must not block a drop
QUOTA_SHARE_REFUSE = 0.92  # above it emits get 507, so that the data stays below the quota
# of a partition's stored bytes that may still be live when it is cleaned: then cleaning copies no
# more than it frees
CLEAN_LIVE_SHARE_MAX = 0.5
CLEAN_LIVE_SHARE_PRESSED_MAX = 0.8  # the same when space is short
CLEAN_ROWS_MAX = 5_000  # copied in one statement: about 50 ms
CLEAN_BYTES_MAX = 4 * 1024 * 1024  # copied in one statement
CLEAN_LOCK_TIMEOUT_MS = 2_000  # for locks on a partition that has no readers left
RETAIN_SESSION_IDLE_S_MAX = 15  # the server ends the session of a leader that has stopped
RETAINED_ROWS_MAX = 500  # pending deliveries that get their events' bytes in one statement
RETAINED_PARTITIONS_MAX = 200  # of deliveries that outlive their events
STORAGE_FULL_RETRY_S = 2  # Retry-After of 507
STORAGE_STREAMS_MAX = 1_000  # in a report of storage, the largest first

# --- disk ---
DISK_IDLE_INTERVAL_S = 5.0  # between two checks while this process stores nothing and space is free
DISK_CHECK_INTERVAL_S = 0.25  # between two checks of the free space; a second of emits is 30 MB
DISK_QUIET_S = 1.0  # without a write refused for lack of space, after which this is announced
DISK_SPARE_BYTES_MIN = 24 * 1024 * 1024  # with less free space emits are refused ...
DISK_SPARE_BYTES_MAX = 256 * 1024 * 1024  # ... and on large disks with less than this
DISK_SPARE_SHARE = 0.02  # of the disk, between the two
# times the free space at which the oldest segments are dropped: with less, jobs write only what
# they must
DISK_LOW_FACTOR = 2
# of the disk, or of the quota: reserved for events, even if other data fills the rest
DISK_FLOOR_SHARE = 0.125
WAL_BYTES_MIN = 48 * 1024 * 1024  # max_wal_size on the smallest disk
WAL_BYTES_MAX = 2 * 1024 * 1024 * 1024  # the same on large ones; a checkpoint every few minutes
WAL_DISK_SHARE = 0.0625  # of the disk, between the two
WAL_SMALL_DISK_BYTES = 4 * 1024 * 1024 * 1024  # on smaller disks the WAL is in small files
BALLAST_BYTES_MIN = 16 * 1024 * 1024  # PostgreSQL recovers with one WAL file and a few pages
BALLAST_BYTES_MAX = 128 * 1024 * 1024  # on large disks
BALLAST_DISK_SHARE = 0.05  # of the disk, between the two
BALLAST_CHECK_INTERVAL_S = 5.0  # between two checks for space to allocate it again
DISK_FULL_RESTART_S = 1.0  # until a part that ended on a full disk is restarted

# --- tail and read ---
RING_EVENTS_MAX = 8_192  # per stream and process; a power of two, slots are found by masking
RING_BYTES_TOTAL_MAX = 32 * 1024 * 1024  # all rings of one process, shared equally; in memory
PAUSE_TOGETHER_S = 5.0  # between the moments at which tasks of a process look for work together
RING_IDLE_S = 10.0  # a ring outlives its last reader by this: a client that polls returns
HEAD_POLL_INTERVAL_S = 0.25  # a lost NOTIFY costs at most this much latency
HEAD_IDLE_INTERVAL_S = 0.8  # while a stream has no reader; less than AUTHORISATION_FRESH_S_MAX
HEAD_REST_INTERVAL_S = 10.0  # and while no request came either ...
HEAD_USED_S = 10.0  # ... for this long
REFUSAL_HEAD_S_MAX = 1.0  # how old the position in a refusal by a limit may be
RECENT_HEADS_MAX = 1_000  # streams whose positions a process remembers for that
HEAD_READ_S_MAX = 1.0  # for the position in a refusal; a refusal that would wait longer has none
MARK_INTERVAL_S = 1.0  # how far the mark outside the database may lag what was acknowledged
MARK_TIMEOUT_S_MAX = 1.0  # of Redis; the head of `system` is locked meanwhile
READ_EVENTS_MAX = 512  # one read from the database
READ_BYTES_MAX = 4 * 1024 * 1024  # one read from the database
READ_SEGMENTS_MAX = 256  # one read of segments; they may be small
READ_TIMEOUT_S_MAX = 5
LOOKUPS_PER_PROCESS_MAX = 2  # database connections that look up credentials and grants only
READERS_PER_PROCESS_MAX = 4  # database connections that serve catch-up reads in one process

# --- transient streams ---
TRANSIENT_EVENTS_DEFAULT = 1_000  # stored in Redis per stream, for later readers
TRANSIENT_EVENTS_MAX = 100_000  # all of it stays in the memory of Redis
TRANSIENT_BYTES_DEFAULT = 8 * 1024 * 1024  # 1,000 events of 8 KiB
TRANSIENT_BYTES_MAX = 256 * 1024 * 1024  # a few such streams fit into a small machine
TRANSIENT_TIMEOUT_S_MAX = 3  # one call of Redis
TRANSIENT_SCRIPT_EVENTS_MAX = 1_000  # of several requests in one script: Redis serves no one else
TRANSIENT_PIPELINE_MAX = 64  # requests in one round trip; a script of some 50 µs, or a part of one
TRANSIENT_WAITING_MAX = 10_000  # requests in one process; beyond it emit answers 503 `overloaded`
# duplicates are detected this long after a producer's last event, and as long as it is stored
TRANSIENT_PRODUCER_S = 24 * 3600

# --- sockets ---
SOCKETS_PER_PROCESS_MAX = 10_000
SOCKETS_PER_CLIENT_MAX = 1_000  # in one process
SOCKETS_QUOTA_MAX = 1_000_000  # of a client or a zone, over all processes
SOCKET_CONNECTIONS_MAX = 2  # database connections of one process that count sockets
SOCKETS_HEARTBEAT_S = 2.0  # of a process with sockets, with the counts that changed
SOCKETS_LOST_S = 6.0  # without a heartbeat, after which the sockets of a process do not count
SOCKETS_DELETE_S = 60.0  # without a heartbeat, after which its counts are deleted
SOCKETS_FREED_S = 0.05  # at most, until a closed socket's place is free in other processes
SOCKETS_FULL_S = 0.1  # after a refusal by a quota, in which a process refuses without a query
SOCKETS_FULL_RETRY_S = 2  # the Retry-After of such a refusal
LISTENERS_PER_SOCKET_MAX = 64
MESSAGE_BYTES_MAX = 64 * 1024  # one message from a client; the largest is a listen with pairs
MESSAGES_PER_S_MAX = 200  # from one socket; beyond it the hub reads more slowly
ACKNOWLEDGEMENT_WEIGHT = 0.05  # of a message: it needs no task and no statement
WINDOW_EVENTS_MAX = 10_000  # unacknowledged events that a listener may request
RESEND_SEQUENCES_MAX = 1_000  # that a reader may request again at once; one page of the log
UNSENT_BYTES_MAX = 4 * 1024 * 1024  # two of the largest frames; pongs count too
SEND_PROGRESS_BYTES_MIN = 16 * 1024  # of a large frame, to count as progress
SEND_STALL_S_MAX = 10.0  # without progress, after which a slow consumer must resume
READER_CHECK_INTERVAL_S = 0.25  # between two checks of a quarter of the readers of a process
READER_CHECK_IDLE_INTERVAL_S = 5.0  # between two writes of its counters while it has no reader
ABANDON_S = 2.0  # from a last frame to a slow consumer until its connection is dropped
# a position is sent at least this often, so the cursor of a filtered listener moves on
PING_INTERVAL_S = 15.0
SOCKET_WRITE_BYTES_MAX = 64 * 1024  # frames to one socket in one write
FRAMES_PER_SLICE_MAX = 64  # frames to one socket before other work runs
# new events to the listeners at the head of a stream, in one pass
FAN_OUT_SLICE_S = 0.002  # before other work runs
FAN_OUT_STEP = 128  # listeners that are written to between two looks at the clock, some 2 ms
FAN_OUT_FRAMES_KEPT_MAX = 16  # of a batch, for listeners whose frames differ; 64 KiB or an event
FAN_OUT_FILTER_COST_MAX = 32  # of a filter, about 64 us; costlier ones are evaluated in own turns
UNSENT_TCP_TIMEOUT_MS = 30_000  # without progress, after which the kernel drops a connection
# for listeners that start or catch up: at a time in one process, in fair order between clients
CATCH_UP_SLICES = 2  # time slices of the event loop before everything else runs: about 1 ms
CATCH_UP_SLICE_S_MAX = 0.25  # a slice that is not used within it is lost
CATCH_UP_OPENS = 2  # reads of a stream's position; with the page reads all READERS_PER_PROCESS_MAX
CATCH_UP_READS = 2  # reads of pages
PAIRS_MAX = 64  # pairs of one listener
LISTEN_REGISTRATIONS_MAX = 1_000  # named by one listener; each costs a check at every change

# --- access ---
# a cached grant is valid while the tail of `system` was confirmed within this
AUTHORISATION_FRESH_S_MAX = 1.0
# requests that need the same look-up share one that started no longer ago: with a look-up of 0.1 s
# a revocation is still effective within a second
LOOKUP_SHARED_S_MAX = 0.5
SECRET_KEY_FALLBACKS_MAX = 8  # each is tried for every secret that the others do not decrypt
SECRET_KEY_CHARACTERS_MIN = 32  # of the key that signs logins and tokens: nobody guesses it
KEYS_CACHED_MAX = 50_000  # per process
KEYS_PER_CLIENT_MAX = 100
CLIENTS_PER_ZONE_MAX = 10_000
AUDIENCES_PER_CLIENT_MAX = 64  # groups of clients; each event with an audience is tested with them
GROUP_ZONES_CACHED_MAX = 1_000  # in one process; a zone has at most CLIENTS_PER_ZONE_MAX clients
GRANTS_PER_KEY_MAX = 100
# addresses and networks that a key may be used from; each is compared in every request of the key
ALLOWED_ADDRESSES_PER_KEY_MAX = 64
ADDRESS_CHARS_MAX = 64  # of one of them; the longest, an IPv6 network, has 43
CONNECTION_TOKEN_S_DEFAULT = 600
CONNECTION_TOKEN_S_MAX = 24 * 3600
TOKEN_BYTES_MAX = 4_096
CHANNELS_PER_ZONE_MAX = 63  # bits 0 to 62; bit 63 is `default`
CONNECTION_TOKEN_GRANTS_MAX = 10  # so that a token fits TOKEN_BYTES_MAX and a URL
# an operator's login behind a token: nothing announces its end, so it is looked up this often
LOGIN_CONFIRMED_MS_MAX = 1_000
LOGIN_BODY_BYTES_MAX = 4 * 1024  # a username and a password, from an unauthenticated caller
# Hashing a password takes some 0.3 s of a core: this many at a time in one web process. Other
# logins wait, addresses in fair order, and hold no connection of the database.
LOGIN_HASHES_AT_ONCE = 1
LOGIN_HASHES_WAITING_MAX = 40  # each has a thread
LOGIN_HASHES_WAITING_PER_ADDRESS_MAX = 2  # a person has one; several share a proxy
OPERATORS_MAX = 1_000  # of the hub: people, not programs
OPERATOR_NAME_CHARS_MAX = 150  # the column of Django's users
OPERATOR_SETUP_S_MAX = 3 * 24 * 3600  # within which a set-up token sets a password
LOGIN_WINDOW_S = 60  # the time over which login attempts are counted
LOGIN_ATTEMPTS_PER_USER_MAX = 10  # in that window, from one address
LOGIN_ATTEMPTS_PER_ADDRESS_MAX = 30  # in that window, for all usernames

# --- management ---
PAGE_ITEMS_DEFAULT = 100
PAGE_ITEMS_MAX = 1_000
MANAGE_BODY_BYTES_MAX = 256 * 1024
JSON_VALUES_MAX = 50_000  # in one such body; more cost a web process tens of milliseconds
BACK_OFFICE_S_MAX = 5  # a statement of a back-office page: not every query has an index
BACK_OFFICE_ROWS_MAX = 10_000  # that a list counts and pages through

# --- registrations ---
REGISTRATIONS_PER_CLIENT_MAX = 1_000_000  # a matcher holds 100,000 in some 100 MB
REGISTRATIONS_PER_REQUEST_MAX = 1_000  # one barrier and one append: 100 ms, heads locked for 20
REGISTRATION_KEY_CHARS_MAX = 200  # a name for programs; each registration stores its own
GROUPS_PER_CLIENT_MAX = 10_000  # a matcher holds the suspensions of each
BULK_LINE_BYTES_MAX = 128 * 1024  # a filter of 1,000 parts; a longer line is skipped
BULK_BATCH_BYTES_MAX = 2 * 1024 * 1024  # of lines that wait for one barrier
BULK_LINGER_S = 0.05  # without another line, after which a batch of any size is stored
BULK_IDLE_S_MAX = 60.0  # without a line, after which the request ends
BULK_THREADS = 2  # that store batches in one process; each takes a connection of the database
STREAMS_PER_REGISTRATION_MAX = 64  # each is in its barriers, and in a matcher that holds it
# that a manager may listen to, so that a list of registrations looks up these alone
STREAMS_LOOKED_UP_MAX = 100
ENDPOINTS_PER_CLIENT_MAX = 10_000  # a worker checks each that has due deliveries
SECRETS_REENCRYPTED_AT_ONCE = 500  # in one statement; some 20 ms
ENDPOINT_HEADERS_MAX = 20  # of its own; they are sent with every callback
ENDPOINT_HEADER_NAME_CHARS_MAX = 128  # longer than any in use
ENDPOINT_HEADER_VALUE_CHARS_MAX = 4_096  # room for a signed token
ENDPOINT_HEADERS_CHARS_MAX = 8_192  # of all; many servers refuse more than 8 KiB of headers
ENDPOINT_CREDENTIAL_CHARS_MAX = 4_096  # of a user name, a password, a token, an audience
ENDPOINT_SCOPES_MAX = 50  # in one request for an access token
ENDPOINT_PEM_CHARS_MAX = 32 * 1024  # of a chain of certificates, a private key, authorities
ENDPOINT_SECRETS_MAX = 5  # of one signature that are valid at once; each signs every callback
ENDPOINT_SECRET_OVERLAP_S_DEFAULT = 24 * 3_600  # for which the previous secret signs too
ENDPOINT_SECRET_OVERLAP_S_MAX = 30 * 24 * 3_600  # a longer one forgets its purpose
URL_CHARS_MAX = 2_048  # of an endpoint; what servers and proxies commonly accept

# --- supervisor ---
RESTARTS_ROW_S = 10.0  # a part that ran for this long starts a new row of restarts
STOP_TIMEOUT_S_MAX = 10.0
SLOW_START_S = 60.0  # a part that is not ready within it is reported
READY_TIMEOUT_S_MAX = 120.0  # of throw-away servers, for tests and benchmarks
LEFTOVERS_END_S_MAX = 60.0  # for the parts of a killed hub to end, each after its own grace
READY_CHECK_S_MAX = 2  # one check of /readyz
GC_LOADING = 10_000  # new objects between two collections while a program is loaded: they all stay
# Then: new objects between two collections of the youngest generation (1 ms each), how many of them
# between two of the second (8 ms), and of these between two of all objects (0.6 µs an object, 0.7 s
# with 5,000 connected sessions), which thus come after five million new objects that stayed.
GC_THRESHOLDS = (2_000, 5, 500)
GRACEFUL_S_MAX = 3  # a stopping web process waits this long for requests under way
RECONNECTS_PER_S = 250  # of the sockets of a stopping web process: the close of each has a pause
REFUSED_RECONNECT_S_MAX = 3  # the longest of a handshake that a stopping web process refuses
RECONNECT_PAUSE_S_MAX = 15.0  # the longest of these; people wait for some
KEEP_ALIVE_S = 75  # longer than clients' pools keep a connection, so that theirs close first
DESCRIPTORS_RESERVED = 256  # of a process: for the database, logs and files
CONNECTIONS_PER_PROCESS_MAX = 20_000

# --- forward ---
# until another forwarder takes over; with the search for free streams less than 3 s in all
FORWARD_LEASE_S = 2.0
FORWARD_RENEW_INTERVAL_S = 0.6  # a third of the lease: two renewals may fail
FORWARD_HELD_S_MAX = 300.0  # an event loop blocked for longer hangs: its leases expire
FORWARD_IDLE_INTERVAL_S = 5.0  # between a forwarder's heartbeats while no stream has callbacks
FORWARD_THREAD_SWITCH_S = 0.0005  # of a thread, as for a snapshot, before the event loop runs
FORWARD_ACQUIRE_INTERVAL_S = 0.25  # between two searches for free streams, while there are some
FORWARD_ACQUIRE_STREAMS_MAX = 100  # in one search, so that forwarders that start together share
FORWARD_RELEASE_STREAMS_MAX = 50  # in one renewal, by one that holds more than its share
FORWARD_STREAMS_PER_PROCESS_MAX = 2_000  # a ring's slots take 64 KiB each
FORWARD_STREAMS_CHECK_S = 10.0  # between searches for streams with callbacks; a change wakes it
FORWARD_WRITERS_PER_PROCESS_MAX = 4  # database connections; a statement takes some ms
DELIVERIES_PER_STATEMENT_MAX = 5_000  # about 40 ms and 2 MB of WAL
# named by its deliveries together; one endpoint may have a million that match every event
REGISTRATIONS_PER_STATEMENT_MAX = 20_000
# of one event; beyond it a row of `fanouts` lets the stream's next events pass
FANOUT_ENDPOINTS_MIN = 10_000
FANOUT_CHECK_INTERVAL_S = 1.0  # between searches for rows that another forwarder left
CHECKPOINT_INTERVAL_S = 1.0  # of a stream without matches: matched twice after a crash
# changes of registrations read at once: 2 MB of filters each, as they may come in bulk
FORWARD_BARRIERS_MAX = 32
FORWARD_LOAD_S_MAX = 120.0  # reading a stream's registrations; a million take about half of it
FORWARD_SLICE_S = 0.02  # of matching without a pause, so that leases are renewed in time
FORWARD_STOP_S_MAX = 1.5  # for statements under way when the process is asked to stop
FORWARD_STREAMS_LABELLED_MAX = 100  # streams with metrics of their own; the rest share one label
DELIVERIES_RETAINED_DAYS = 30  # after the last segment of their partition was sealed
ATTEMPTS_RETAINED_DAYS = 30  # a day is dropped as a whole
RETIRE_SEALED_MAX = 100  # segments of quiet streams, sealed in one transaction; some 20 ms
PARTITIONS_INTERVAL_S = 5.0  # between checks whether partitions exist ahead of need ...
PARTITIONS_IDLE_INTERVAL_S = 20.0  # ... and while no stream has callbacks
DETACH_TIMEOUT_S_MAX = 30.0  # a reader's old snapshot ends it; the next run finishes it
PARTITION_ARCHIVE_S_MAX = 3_600.0  # to archive one partition; 10 GB of attempts take some minutes
PARTITION_ARCHIVE_PRESSED_S_MAX = 60.0  # the same when space is short; then it is dropped as it is
PARTITION_ARCHIVE_PING_S = 1.0  # between pings of the database session that waits for it

# --- record of listeners ---
LISTENERS_RETAINED_DAYS = 30  # a day is dropped as a whole; the audit proves nothing older
LISTENERS_WRITE_INTERVAL_S = 1.0  # between writes of ends; a killed process leaves open rows
LISTENERS_PROGRESS_INTERVAL_S = 30.0  # between writes of how far open listeners were sent events
LISTENERS_FINISH_S_MAX = 2.0  # to write the rest when the process is asked to stop
LISTENERS_PER_STATEMENT_MAX = 500  # about 10 ms
LISTENER_PAUSE_S = 90.0  # between requests that follow one another and count as one listener
LISTENER_ROW_S_MAX = 86_400.0  # a longer one starts a new row: a day's rows end by the next day
LISTENER_FILTER_CHARS_STORED = 4_096  # an audit cannot evaluate a longer filter
# of one client in one process; of more only their existence is recorded: 30 MB an hour
LISTENERS_RECORDED_PER_CLIENT_HOUR = 100_000

# --- deliveries ---
DELIVERIES_SCANNED_MAX = 10_000  # rows scanned for one page of all endpoints; some 50 ms
DELIVERIES_DECODED_MAX = 2_000  # the same for a search by type or id of the event; some 50 ms
DELIVERY_SEARCH_ENDPOINTS_MAX = 1_000  # of a search over a stream; an index look-up for each
DEAD_LETTERS_EXAMINED_MAX = 20_000  # rows grouped for one page; some 150 ms
DEAD_LETTER_SAMPLES = 3  # deliveries shown of each group
DELIVERY_IN_PROGRESS_S = 15  # Retry-After of a change to a delivery that is being posted

EXAMPLES_RETAINED = 1_000  # events of the stream of examples of a zone

# --- sessions ---
SESSIONS_PER_CLIENT_MAX = 1_000  # a new one counts them
SESSION_GROUPS_PER_CLIENT_MAX = 100  # likewise
SESSION_GROUP_MEMBERS_MAX = 100  # a new registration of the group adds a cursor to each
SESSION_SUPPLIES_MAX = 100  # declared types of a supplier; each emitted event is compared to them
SESSION_SUPPLIES_SHOWN_MAX = 10  # of them, in a refusal of another type
SESSION_WINDOW_DEFAULT = 100  # unacknowledged events of a session: a second's work of a consumer
SESSION_WINDOW_MAX = 10_000  # likewise; each is in the memory of a process until it is acknowledged
SESSION_ORDER_NAMES_MAX = 100  # types, or suppliers, in the options of an order
SESSIONS_CACHED_MAX = 10_000  # by the authorizer; some 5 MB

# --- delivery to sessions ---
SESSIONS_PER_SOCKET_MAX = 64  # like listeners
VERSION_LOADS_PER_GROUP_MAX = 200  # matchers of listeners and sessions that are loaded at once
SESSION_STREAMS_MAX = 1_000  # of one connected session; a ring's slots take 64 KiB each
SESSION_MATCHES_REMEMBERED = 1_024  # results of a group in a stream, while members are near
SESSION_ROUTE_PAGE_EVENTS_MAX = 64  # matched for all sessions before other work runs: some 2 ms
SESSION_ROUTE_EVENTS_MAX = 64  # that wait for one session; beyond it, it reads for itself
SESSION_ROUTES_CHECK_S = 1.0  # between looks for sessions that nothing concerned for ...
SESSION_ROUTE_LOOK_S = 5.0  # ... this long: their positions advance too
SESSION_ROUTES_CHECKED_TOGETHER = 64  # of which some 13 are due: 1 ms
SESSION_POSITIONS_WRITE_S = 0.2  # between saves, unless an answer waits for one
SESSION_POSITIONS_INTERVAL_S = 5.0  # between saves of a session without acknowledgements
SESSION_POSITIONS_RENEW_S = 6 * 3600.0  # between saves of unchanged ones: retention counts days
SESSION_POSITIONS_PER_STATEMENT_MAX = 100  # some 2 ms of the event loop
SESSION_POSITIONS_SLICE_S = 0.002  # of taking them from sessions before other work runs
SESSION_END_REST_S = 0.005  # between the ends of two, some 2 ms each: others are served meanwhile
SESSION_CHECK_S = 1.0  # until a connection notices that another process has replaced it
SESSION_SETTINGS_CHECK_S = 10.0  # between reads of all settings, without an event of `system`
SESSIONS_CHECKED_TOGETHER_MAX = 50  # by one statement, with all settings: some 2 ms
SESSIONS_COMPARED_TOGETHER_MAX = 500  # ... and whether something has changed: some 1.5 ms
SESSION_CHECK_PAUSE_S = 0.05  # between two checks, of which each change of a session causes one
SESSION_BLOCK_EVENTS = 256  # that sessions which are behind share; indexing them takes 2 to 5 ms,
SESSION_BLOCK_SLICE_S = 0.0005  # ... so long at a time: an event passes the loop several times,
SESSION_BLOCK_SLICE_ROUNDS = 4  # ... and waits for one or two slices
VERSIONS_READ_AT_ONCE_MAX = 256  # read without a cursor in the database: 1 ms of the event loop
SESSION_BLOCKS_READ_EVENTS_MAX = 512  # at once, for all: 2 ms of the event loop
SESSION_BLOCKS_PASSED_EVENTS_MAX = 8_192  # at once, by a session: 0.3 ms
SPECS_NARROWING_MAX = 256  # conjunctions that are looked up in a block: more are matched instead
SESSION_BLOCKS_BYTES_TOTAL_MAX = 64 * 1024 * 1024  # of all streams of a process
SESSION_BLOCKS_IDLE_S = 10.0  # until an unused one is dropped
SESSIONS_ATTACHED_TOGETHER_MAX = 50  # and detached; some 3 ms, half of it of the event loop
# database connections of one process: one saves, one connects, the others acknowledge over HTTP
SESSION_CONNECTIONS_MAX = 4
SESSION_ACKNOWLEDGED_STREAMS_MAX = 100  # in one request, whose transaction locks the session
# sequences above a session's cursor: as many as a connection tracks, some 80 KB in its row
SESSION_ACKNOWLEDGED_MAX = 10_000
SESSION_REDELIVERED_PER_ROUND_MAX = 64  # events; each is read from the log: some 1 ms
PULL_EVENTS_DEFAULT = 100  # as a page of history
PULL_EVENTS_MAX = 1_000  # of one pull; claimed by one statement, some 10 ms
PULL_VISIBILITY_S_DEFAULT = 30.0  # as queues elsewhere: SQS, JetStream
PULL_VISIBILITY_S_MIN = 1.0  # shorter than an answer may take, an event would be given to two
PULL_VISIBILITY_S_MAX = 12 * 3600.0  # likewise SQS's; a claim retains its event
SESSION_ATTEMPTS_MAX = 1_000  # of an event; as maxReceiveCount of SQS
SKIPPED_PER_STATEMENT_MAX = 1_000  # events that one pull skips; some 10 ms
SKIPPED_NAMED_MAX = 20  # of the skipped events in an announcement; it counts all
SKIPS_INTERVAL_S = 60.0  # a session's first one is announced at once, and then at most this often
SKIPS_PER_CHECK_MAX = 100  # sessions, announced in one transaction; there is one each second
CLAIMS_COUNT_INTERVAL_S = 10.0  # as TIMERS_COUNT_INTERVAL_S
CLAIMS_COUNTED_MAX = 100_000  # likewise; some 20 ms
PULL_CHECK_S = 1.0  # until a waiting pull notices what another process has given back
# events that wait for others of their key while those of other keys go; read again by each pull
PULL_KEYED_OFFERS_MAX = 1_000
SHARED_CLAIM_S = 10.0  # a connected member has events so long, until its process renews that ...
SHARED_RETAIN_S = 3.0  # ... and another member gets them when the process was killed
PULL_SOURCE_IDLE_S = 30.0  # without a pull, until what was read of a session is dropped
PULL_SOURCES_MAX = 1_000  # pulled sessions of one process, by key; each has readers and a queue
PULL_CONNECTIONS_MAX = 4  # database connections of one process; a pull holds one for some ms

# --- applications ---
APPLICATIONS_PER_ZONE_MAX = 100_000  # a new one counts them: some 10 ms
APPLICATION_GROUPS_PER_ZONE_MAX = 1_000  # all may be derived again after one change
APPLICATION_GROUP_MEMBERS_MAX = 1_000  # read after each change of one of them
APPLICATION_REASON_CHARS_MAX = 1_000  # a sentence or two, in each event
APPLICATION_EVENTS_RETAINED = 100_000  # of a zone; the latest of each key always is
APPLICATIONS_COUNT_INTERVAL_S = 60.0  # between counts for the metric, which read all rows
HEARTBEAT_TIMEOUT_S_MIN = 5  # several checks, and a retry of the sender
HEARTBEAT_TIMEOUT_S_MAX = 7 * 24 * 3600  # a weekly job
HEARTBEAT_CHECK_INTERVAL_S = 1.0  # between checks while one is overdue or nearly
# between steps of a watch with nothing to do, and attempts to lead one; the shortest time-out of a
# heartbeat, and below RETAIN_SESSION_IDLE_S_MAX
WATCH_REST_S = 5.0
HEARTBEATS_MISSED_AT_ONCE = 500  # in one transaction, which holds up reports of the zone

# --- timers ---
TIMERS_PER_CLIENT_MAX = 1_000_000  # some 300 MB with their indexes
TIMER_EVERY_S_MIN = 1  # of an interval; a cron expression matches once a minute at most
TIMER_EVERY_S_MAX = 366 * 24 * 3600  # a yearly one
TIMER_AHEAD_S_MAX = 10 * 366 * 24 * 3600  # from now, of every time in a request
TIMER_CRON_CHARS_MAX = 200  # five fields with long lists
TIMER_EVENT_BYTES_MAX = 64 * 1024  # stored: those that fire at once take 64 MiB
TIMER_UPCOMING = 5  # times that are shown of a timer
TIMER_MISSED_COUNTED_MAX = 1_000  # of a cron expression in an outage; some 20 ms
TIMERS_FIRED_AT_ONCE = 1_000  # in one transaction; some 40 ms, as long as a batch of events
TIMERS_LEAD_INTERVAL_S = 1.0  # in which another forwarder takes over, while there are timers
TIMERS_CHECK_INTERVAL_S = 5.0  # while nothing is due; shorter than RETAIN_SESSION_IDLE_S_MAX
TIMER_HELD_PAUSE_S = 0.02  # until a row is read again that is being changed
TIMER_POSTPONED_S = 60.0  # while its stream accepts no events
TIMERS_COUNT_INTERVAL_S = 10.0  # between counts for metrics
TIMERS_COUNTED_MAX = 100_000  # of those that are due; some 20 ms
DELAY_PAST_S_MAX = 24 * 3600  # a request is repeated within a day, as long as repeats are found
DELAYS_PER_PROCESS_MAX = 2  # database connections that store delayed events; opened when needed

# --- sources ---
SOURCES_PER_CLIENT_MAX = 1_000  # each is a URL that somebody configured at a provider
SOURCE_TOLERANCE_S = 300  # of a time stamp, as Standard Webhooks, Stripe and Slack recommend
SOURCE_SECRET_CHARS_MAX = 512  # longer than any provider's
SOURCE_OVERLAP_S_DEFAULT = 24 * 3600  # in which the secret or URL before is valid too
SOURCE_OVERLAP_S_MAX = 30 * 24 * 3600  # a month to change it at the provider
SOURCE_ATTRIBUTES_MAX = 64  # of a map
SOURCE_POINTER_CHARS_MAX = 256  # of a JSON pointer
SOURCE_JOIN_MAX = 8  # parts of a joined value
SOURCE_FORM_FIELDS_MAX = 1_000  # of a form or query, which are parsed whole
SOURCE_SAMPLES_MAX = 20  # kept of a source, of verified requests, and as many of refused ones
SOURCE_SAMPLE_BYTES_MAX = 64 * 1024  # kept of a body: 20 of 1,000 sources are at most 1.3 GB
SOURCE_HEADERS_BYTES_MAX = 8 * 1024  # kept of the headers of a sample

# --- connectors ---
CONNECTORS_PER_CLIENT_MAX = 100  # each is a connection, and a database that somebody prepared
CONNECTORS_MAX = 5_000  # that one process runs; each takes some 100 KB
CONNECTOR_URL_CHARS_MAX = 2_048  # of a URL with credentials
CONNECTOR_ROWS_AT_ONCE = 500  # of one transaction; some 40 ms, as long as a batch of events
CONNECTOR_ROWS_FIRST = 20  # until the size of rows is known
CONNECTOR_BATCH_BYTES = 8 * 1024 * 1024  # of the rows of a batch, by the size of those before it
CONNECTOR_ROW_BYTES_MAX = 2 * 1024 * 1024  # of a row as JSON: twice an event, whose body it repeats
CONNECTOR_CONFIRM_S = 1.0  # between confirmations of what a replication slot may forget
CONNECTOR_WAL_BYTES = 16 * 1024 * 1024  # of other tables, until a slot may forget them
CONNECTOR_POLL_S = 0.2  # between two looks at a table that had no new rows ...
CONNECTOR_POLL_S_MAX = 1.0  # ... doubled each time up to this; a look takes some 0.3 ms
CONNECTOR_REPORT_S = 5.0  # between reports of states and lags
CONNECTOR_LAG_ROWS_MAX = 10_000  # counted; some 5 ms in an indexed table
CONNECTOR_STALE_S = 30  # without a report, until a connector is shown as not running
CONNECTOR_RETRY_S = (1.0, 10.0)  # after a fault, doubled with each one in a row
CONNECTOR_STOPPED_RETRY_S = 60.0  # of what only a change ends, in case it was in the other system
CONNECTOR_STATEMENT_S_MAX = 30.0  # of a statement in the other database
CONNECTOR_DETAIL_CHARS_MAX = 500  # of the words of a fault
CONNECTOR_REFUSALS_PER_S = 50  # events of `system` for rows that are set aside, by one connector
CONNECTOR_REFUSED_CHARS_MAX = 8 * 1024  # of a row in such an event
CONNECTOR_STOP_S_MAX = 3.0  # for the transaction under way, when the process stops
CONNECTOR_KAFKA_MAX = 200  # that one process runs; each has some six threads and 8 MiB of records
CONNECTOR_TOPICS_MAX = 20  # of one connector
CONNECTOR_PARTITIONS_MAX = 1_000  # of its topics: a position has some ten bytes for each

# --- clusters of Kafka, of connectors and sinks ---
KAFKA_SERVERS_MAX = 16  # named in a URL; any of them names the others
KAFKA_BROKERS_MAX = 500  # of a cluster, whose addresses are all checked
KAFKA_ANSWER_S_MAX = 10.0  # until a cluster is found, or answers about a topic
KAFKA_LOOK_S = 30.0  # between two looks at a cluster: its servers, its partitions
KAFKA_ANSWER_BYTES_MAX = 32 * 1024 * 1024  # of a server; what is larger is no record of an event
KAFKA_FETCH_BYTES = 4 * 1024 * 1024  # of one fetch, unless its first record is larger
KAFKA_QUEUED_KB = 8 * 1024  # of records that are fetched ahead

# --- monitoring ---
MEMBER_HEARTBEAT_S = 5.0  # between heartbeats of a process, one row each; half of it at least
MEMBER_LOST_S = 16.0  # without a heartbeat, of which three were due, a process is lost
MEMBER_LEAVE_S_MAX = 1.0  # a process that ends waits this long for the database
MEMBERS_CHECK_INTERVAL_S = 1.0  # between checks while a member is nearly lost; joins wake it
PRESENCE_CHECK_INTERVAL_S = 2.0  # between comparisons of all counted sockets; some 20 ms of 10,000
PRESENCE_GRACE_S = 30.0  # without a socket, in which a client may reconnect
PRESENCES_AT_ONCE = 1_000  # clients in one transaction: 10,000 that connect at once cost ten
TRACES_INTERVAL_S = 0.2  # between two appends of traces in one process ...
TRACES_AT_ONCE = 500  # ... of so many calls: 2,500 a second, about one core of the appender's time
TRACES_WAITING_MAX = 5_000  # calls in one process, some 2 MiB; others are dropped and counted
TRACE_EVENTS_RETAINED = 100_000  # of a zone: some hours of a busy console
PRESENCE_EVENTS_RETAINED = 100_000  # of a zone; the latest of each connected client always is
EXAMPLE_ITEMS_MAX = 1_000  # of a list in a generated example
EXAMPLE_SIZE_MAX = 65_536  # values, and characters of texts, that a schema's minimums may ask for

# --- replay runs ---
REPLAY_RUNS_PER_CLIENT_MAX = 5  # running or paused
REPLAY_RUNS_PER_ZONE_MAX = 20  # one process of the hub makes their steps in turn
REPLAY_RUNS_RETAINED_DAYS = 90  # after their end; longer than deliveries
REPLAY_RATE_DEFAULT = 100  # deliveries per second
REPLAY_RATE_MAX = 5_000  # about what one run's steps reach
REPLAY_STREAMS_MAX = 64  # named by one run
REPLAY_STEP_S = 0.5  # a step writes what the rate allows in this time ...
REPLAY_STEP_ROWS_MAX = 1_000  # ... but not more; some 10 ms
REPLAY_STEP_EVENTS_MAX = 2_000  # matched in one step; some 40 ms
# pending deliveries of the endpoint, beyond which a run waits: the backlog has bounds of its own
REPLAY_PENDING_MAX = 1_000
REPLAY_WAIT_S = 0.5  # between looks at a run that waits for something
REPLAY_UNIT_S = 10.0  # one task of a worker; the next one goes on
REPLAY_PACE_S_MAX = 60.0  # a step is due later only after the clock was set back
REPLAY_PREVIEW_EVENTS_MAX = 50_000  # examined by a preview; the rest is estimated
REPLAY_PREVIEW_S_MAX = 3.0  # a client waits for it
REPLAY_PREVIEWS_PER_PROCESS_MAX = 4  # at a time; each takes a connection and part of a core
REPLAY_PREVIEWS_PER_CLIENT_MAX = 2  # of these, in one process
REPLAY_PREVIEW_SAMPLES = 3  # first and last ones shown
REPLAY_PREVIEW_TAIL_EVENTS = 500  # examined at the end of a range for the last samples

# --- callbacks ---
CALLBACK_SLOTS_MAX = 576  # requests under way in one worker; a loop serves 10,000 a second with 256
# slots that a client may hold for each free one, so that some stay free for those that hold none
CALLBACK_CLIENT_SLOTS_PER_FREE = 2
# requests that last longer than CALLBACK_SLOW_S, which take no slot, but a descriptor and some KiB
CALLBACK_HANGING_MAX = 1_152
CALLBACK_SLOTS_PER_ENDPOINT_MAX = 32  # so that no endpoint takes many of them
CALLBACK_PER_SLOT_S = 0.02  # a slot takes what an endpoint with all its slots accepts within it ...
CALLBACK_PER_SLOT_MAX = 8  # ... but no more deliveries than these, posted one after the other
# of all endpoints that are new or failing; healthy endpoints always have the rest: new ones that
# hang start 64 requests in 2 s, each of which lasts 12 s
CALLBACK_SLOTS_UNPROVEN_MAX = 384
CALLBACK_SLOTS_NEW_MAX = 64  # of these for endpoints never tried, until they answer or are slow
CALLBACK_SLOTS_TROUBLE_MAX = 64  # of these for attempts at endpoints that are failing
CALLBACK_SLOTS_NEW_ENDPOINT_MAX = 4  # until the first success; then twice as many each time
CALLBACK_SLOW_S = 2.0  # an endpoint with a longer request gets one slot until it answers
CALLBACK_ENDPOINTS_REMEMBERED_MAX = 20_000  # recent results, in one worker; about 10 MB
CALLBACK_TIMEOUT_S_MAX = 12.0  # one attempt, from the DNS look-up to the end of the response
CALLBACK_OWN_TIMEOUT_S_MAX = 30  # if the endpoint has a time of its own; below CALLBACK_CLAIM_S
CALLBACK_RATE_MIN = 0.01  # requests per second, if the endpoint has such a limit
CALLBACK_RATE_MAX = 10_000.0  # more than a worker posts
CALLBACK_CONCURRENCY_MAX = 1_000  # requests at a time, of all workers, if it has such a limit
CALLBACK_THROTTLED_SCAN_S = 0.25  # between searches while such a limit withholds something
CALLBACK_CONNECT_TIMEOUT_S_MAX = 4.0  # of the time above: DNS, TCP and TLS
CALLBACK_BODY_S_MAX = 2.0  # for the rest of a response whose status is known
CALLBACK_HEADERS_BYTES_MAX = 16 * 1024  # of a response
CALLBACK_HEADERS_COUNT_MAX = 100  # of a response
CALLBACK_ANSWER_BYTES_READ_MAX = 16 * 1024  # of a response's body; the rest is not read
CALLBACK_ANSWER_CHARS_STORED_MAX = 1_024  # of a response's headers, and of its body, in an attempt
CALLBACK_KEEP_ALIVE_S = 20.0  # shorter than servers usually keep an idle connection
CALLBACK_ADDRESSES_MAX = 16  # of a name that are tried in one attempt; receivers have a few
CALLBACK_DNS_S_MAX = 10  # a resolved address is reused for this long
# DNS look-ups at a time: as many as unproven endpoints may hold, so that dead names delay nobody
CALLBACK_DNS_THREADS_MAX = 384
CALLBACK_CLAIM_S = 45.0  # longer than any attempt; claims of a dead worker are freed sooner
CALLBACK_HEARTBEAT_S = 0.7  # between a worker's heartbeats ...
CALLBACK_IDLE_HEARTBEAT_S = 1.4  # ... while it holds no claim; under half of CALLBACK_SILENT_S
CALLBACK_REST_HEARTBEAT_S = 3.5  # ... and while none can; below CALLBACK_SILENT_S
# a worker without a heartbeat for this long is dead, and its claims are due; it posts nothing
# either unless its heartbeat was written: five heartbeats, of which a busy database may lose some
CALLBACK_SILENT_S = 4.0
# between searches for times that a step of the clock left behind; a step noticed starts one at once
CALLBACK_REPAIR_INTERVAL_S = 30.0
CALLBACK_REPAIR_DELIVERIES_MAX = 1_000  # of one endpoint in one such search
CALLBACK_CIRCUIT_FAILURES = 5  # in a row; then the circuit of the endpoint opens ...
CALLBACK_CIRCUIT_S_BASE = 1.0  # ... for half of this to all of it, then for twice as long ...
# ... up to this: some 30 requests in the first hour of an outage, 16 in each later one
CALLBACK_CIRCUIT_S_MAX = 300.0
CALLBACK_PROBE_S = CALLBACK_CLAIM_S  # the one request meanwhile: an attempt, and its result written
# between two announcements of an endpoint's circuit, which may open and close all the time
CALLBACK_CIRCUIT_ANNOUNCE_S = 60.0
# an endpoint that failed for this long without a success is disabled, unless it has a time of its
# own: longer than the default schedule of retries
CALLBACK_DISABLE_AFTER_S = 5 * 86_400
CALLBACK_DISABLE_AFTER_S_MIN = 3_600  # of such a time; 0: never
CALLBACK_DISABLE_AFTER_S_MAX = 30 * 86_400  # attempts are retained for as long
# shares of that time after which the endpoint is announced as failing
CALLBACK_WARNED_PERCENT = (50, 70, 90)
# when a circuit closes, so many deliveries that failed while it was open are due at once
CALLBACK_HASTENED_MAX = 1_000
CALLBACK_HASTENED_LANES_MAX = 500  # the oldest deliveries of so many lanes
# between searches for deliveries that an open circuit withheld for as long as their schedule takes
CALLBACK_EXHAUST_INTERVAL_S = 60.0
# examined in one pass of a search; the next one, a second later, continues with the next endpoint
CALLBACK_EXHAUST_ENDPOINTS_MAX = 100
CALLBACK_EXHAUST_DELIVERIES_MAX = 1_000  # in one statement; some 30 ms ...
CALLBACK_EXHAUST_STATEMENTS_MAX = 10  # ... of which one pass has so many
DEAD_LETTERS_COUNT_INTERVAL_S = 60.0  # between two counts, which have passes a second apart ...
DEAD_LETTERS_COUNT_ENDPOINTS_MAX = 100  # ... of so many endpoints ...
DEAD_LETTERS_COUNTED_MAX = 100_000  # ... or dead letters, some 20 ms; also the most of an endpoint
CALLBACK_CLAIM_DELIVERIES_MAX = 256  # one claim; about 5 ms
# stored bytes of the events that one claim reads; deliveries of the rest are claimed again later
CALLBACK_CLAIM_BYTES_MAX = 64 * 1024 * 1024
# of the bodies that a worker holds for its requests, of which a client has a share as of slots
CALLBACK_BYTES_HELD_MAX = 256 * 1024 * 1024
CALLBACK_LANE_DELIVERIES_MAX = 32  # one claim of an ordered lane; posted one after the other
CALLBACK_SECRET_CHARS_HIDDEN_MIN = 8  # a shorter header's value is left in a recorded response
# An access token (OAuth 2.0), from the look-up to the response; the attempt follows, and after a
# 401 within the same time another token and attempt: together less than two attempts' time.
OAUTH2_TOKEN_S_MAX = 6.0  # until there is a token ...
OAUTH2_REQUEST_S_MAX = 4.5  # ... of which one request takes so much, so that its failure is stored
OAUTH2_CLAIM_S = 15.0  # a worker that died requesting a token; no other one requests it meanwhile
OAUTH2_TOKEN_POLL_S = 0.1  # while another worker requests the token
OAUTH2_FAILURE_PAUSE_S = 5.0  # after a failed request for a token, of all workers together
OAUTH2_LIFETIME_S_DEFAULT = 300.0  # of a token whose response does not say it
OAUTH2_LIFETIME_S_MAX = 24 * 3_600.0  # a revoked token is replaced after a 401 anyway
OAUTH2_MARGIN_S = 30.0  # before its end a token is replaced; a tenth of a shorter lifetime
OAUTH2_TOKEN_AGE_S_MIN = 60.0  # a token that is rejected earlier is not replaced
OAUTH2_ERROR_BYTES_STORED_MAX = 256  # of the response of a token URL
# --- batches of an endpoint ---
BATCH_EVENTS_MIN, BATCH_EVENTS_MAX = 2, 1_000  # in one request
BATCH_BYTES_MIN, BATCH_BYTES_MAX = 1_024, 4 * 1024 * 1024  # of its body; one event may exceed it
BATCH_BYTES_DEFAULT = 1024 * 1024  # some thousand small events
BATCH_LINGER_MS_MAX = 60_000  # beyond it a receiver had better read the log itself
# of the answer to a batch, which may have a result for each event: some 100 bytes each
BATCH_ANSWER_BYTES_MAX = 256 * 1024
BATCH_DELIVERIES_CLAIMED_MAX = 4_096  # in one claim, of all endpoints with batches
BATCH_FLUSH_REQUESTS_MAX = 64  # batches whose results are written in one statement
BATCH_UNWRITTEN_MAX = 20_000  # results of batches; beyond it nothing is claimed
# the attempts of a batch share a row if their sequences are in the same range of so many
BATCH_ATTEMPT_SPAN = 1_000
# --- sinks: endpoints whose events are stored ---
SINK_ROWS_DEFAULT = 500  # of one transaction; some 20 ms
SINK_COLUMNS_MAX = 200  # of a table that get a value, or of a file that is read
SINK_POINTER_CHARS_MAX = 1_024  # of a path into an event
SINK_NAME_BYTES_MAX = 63  # of a table or column: PostgreSQL cuts longer ones
SINK_ROWS_BYTES_MAX = 32 * 1024 * 1024  # of one statement: columns may repeat parts of an event
SINK_REFUSED_MAX = 8  # events of a batch that an attempt finds, by some 20 statements each
SINK_ANSWER_BYTES_MAX = 1024 * 1024  # of a database to one statement, which returns no rows
SINK_ANSWER_LOOK_S = 0.05  # between two looks at what a database has sent
SINK_OBJECT_EVENTS_DEFAULT = 1_000  # of an object of S3
SINK_OBJECT_BYTES_DEFAULT = 4 * 1024 * 1024  # as much as a batch may have
SINK_OBJECT_LINGER_MS_DEFAULT = 60_000  # objects that are many and small are slow to read
SINK_OBJECT_READ_BYTES_MAX = 64 * 1024 * 1024  # of an object that an attempt before may have stored
SINK_PATH_CHARS_MAX = 512  # of an object's folder; with the name a key has at most 1,024 bytes
SINK_ERROR_BYTES_MAX = 4 * 1024  # of the answer to a refused request
SINK_RECORDS_DEFAULT = 500  # of one batch to a topic of Kafka
SINK_RECORD_BYTES_MAX = 4 * 1024 * 1024  # of one to Kafka, whose own bound is lower as a rule
SINK_OPEN_PER_ENDPOINT_MAX = 4  # connections of one worker: a database has some hundred in all
SINK_OPEN_MAX = 256  # connections that a worker keeps, of all endpoints; the oldest are closed
SINK_IDLE_S = 30.0  # an unused connection is kept; a database has better use for it afterwards
CALLBACK_SCAN_INTERVAL_S = 1.0  # between searches for due deliveries while some are pending ...
CALLBACK_REST_INTERVAL_S = 60.0  # ... and when none was pending for CALLBACK_REST_AFTER_S
CALLBACK_REST_AFTER_S = 10.0  # a burst that pauses is still searched for every second
CALLBACK_SCAN_ENDPOINTS_MAX = 500  # in one search; 10 µs each, and the next one starts after them
CALLBACK_SCAN_NEXT_S = 0.05  # after a search that did not reach the end
CALLBACK_FLUSH_INTERVAL_S = 0.02  # results wait at most this long for others
CALLBACK_FLUSH_RESULTS_MAX = 200  # results in one statement
CALLBACK_UNWRITTEN_MAX = 2_000  # results; beyond it nothing is claimed until they are written
CALLBACK_EVENT_BYTES_CACHED_MAX = 32 * 1024 * 1024  # of events pending for many endpoints
CALLBACK_EVENT_CACHED_BYTES = 450  # of it, that each takes in addition to its body
CALLBACK_EVENT_CACHED_S_MAX = 30.0  # since its last use; longer than the first pause of a retry
CALLBACK_NAMES_CACHED_MAX = 10_000  # segments' UUIDs with their streams' names; decrypted secrets
CALLBACK_GATHER_S = 0.003  # what comes within it is claimed together ...
CALLBACK_GATHER_DELIVERIES_MIN = 8  # ... after a claim of so many, or if more is due than slots
CALLBACK_STOP_S_MAX = 3.0  # a stopping worker waits this long for responses, then frees its claims
# pauses before retries, after Standard Webhooks: 75 hours; then the delivery is dead-lettered
CALLBACK_RETRY_SCHEDULE_S = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
CALLBACK_RETRIES_MAX = 30  # pauses in the schedule of an endpoint
CALLBACK_RETRY_S_MAX = 86_400  # one of these pauses
CALLBACK_RETRY_TOTAL_S_MAX = 14 * 86_400  # all of them; a backlog is not retained for longer
CALLBACK_RETRY_JITTER = 0.5  # a pause is longer or shorter by up to this share of it
CALLBACK_RETRY_AFTER_S_MAX = 3_600.0  # of a response's Retry-After
CALLBACK_CANCEL_DELIVERIES_MAX = 1_000  # of a deleted endpoint in one statement
CALLBACK_WAKE_INTERVAL_S = 0.002  # between two notifications of new deliveries, at least
# until workers that a notification does not choose look too: the chosen one takes some ms
CALLBACK_RELIEF_S = 0.03
# one unit of delivery work: then the next one starts, so that a worker's tools see its work
CALLBACK_UNIT_DELIVERIES_MAX = 10_000
CALLBACK_UNIT_S_MAX = 5.0  # the same; far below what a broker waits for an acknowledgement
CALLBACK_UNIT_LINGER_S = 1.0  # after its last claim: what comes meanwhile needs no other unit
CALLBACK_UNIT_START_S = 1.0  # from its message to its start; else the worker runs it without one
CALLBACK_UNIT_RETRY_S_MAX = 2  # the longest pause before a failed unit is retried
CALLBACK_UNIT_SEND_S_MAX = 0.5  # of Redis for such a message
BROKER_POLL_S = 2  # a worker's request to Redis for tasks waits this long; so may its stop
QUEUE_BUSY_S = 10  # until a task that found no free slot of its queue in a worker is redelivered
WORKER_NAME_CHECK_S = 2.0  # a starting worker waits this long for another worker of its name
TASK_REQUEST_EXPIRY_S = 300  # a requested task not started within it is left to the timetable
TIMETABLE_REST_S = 300.0  # between runs of log-driven tasks while nothing is appended to the log
CONSUMER_PAUSE_S_MAX = 5.0  # of a worker's tasks, while Redis is unavailable or answers errors
CONSUMER_STEADY_S = 10.0  # without a fault, after which the next pause is short again
CALLBACK_LANE_IDLE_S = 3_600.0  # without a holder, after which a lane is forgotten
CALLBACK_ARCHIVE_S_MAX = 2.0  # to read archived events for one claim; the rest is retried
CALLBACK_HEADER_REGISTRATIONS_MAX = 100  # beyond it a CloudEvent does not name those that matched

# --- verifications of endpoints ---
VERIFICATIONS_MAX = 16  # requests under way in one worker
VERIFICATIONS_PER_CLIENT_MAX = 4  # of these of one client, in all workers
VERIFICATION_CLAIM_S = 30.0  # longer than a request and the write of its result
VERIFICATION_INTERVAL_S = 5  # between two requests of one endpoint, at least
VERIFICATION_SCAN_S = 30.0  # between searches for requests, whose notifications may be lost
# requests per minute that the hub asks a receiver to allow; more than it posts to one endpoint
VERIFICATION_RATE_REQUESTED = 600_000
VERIFICATION_RATE_MAX = 1_000_000_000  # an answer that allows more sets no bound

# --- backlogs ---
# of one endpoint: three hours at 100 a second; some 300 MB of rows
BACKLOG_EVENTS_DEFAULT = 1_000_000
BACKLOG_BYTES_DEFAULT = 1024 * 1024 * 1024  # the same, with the events' stored bytes
BACKLOG_AGE_S_DEFAULT = 14 * 24 * 3_600  # an endpoint that nobody has repaired for this long
BACKLOG_EVENTS_MAX = 1_000_000_000  # of a quota
BACKLOG_BYTES_MIN = 1024 * 1024  # of a quota; a few thousand deliveries
BACKLOG_CLIENT_FACTOR = 4  # times the bound of one endpoint: for all endpoints of a client
# of the quota, or of the disk: one endpoint takes no more than a partition of events ...
BACKLOG_SHARE_ENDPOINT = 0.0625
BACKLOG_SHARE_CLIENT = 0.125  # ... one client no more than two ...
BACKLOG_SHARE_HUB = 0.25  # ... and all together leave three quarters to the rest
BACKLOG_SHARE_GOAL = 0.9  # of the bound is left after a drop: so drops come in bulk
BACKLOG_ROW_BYTES = 300  # of a delivery with its index entries, in addition to the event's bytes
BACKLOG_CHECK_INTERVAL_S = 1.0  # between two counts ...
BACKLOG_CHECK_SHARE = 20.0  # ... with pauses of at least this many times what the count took
BACKLOG_CHECK_INTERVAL_S_MAX = 60.0  # for at most this long a bound may be exceeded
BACKLOG_ENDPOINTS_PER_STATEMENT_MAX = 20  # counted in one; a million rows take about a second
# an endpoint that loses deliveries is announced at once, and then at most this often
LOSSES_INTERVAL_S = 600.0
LOSSES_PER_CHECK_MAX = 100  # of endpoints, announced in one transaction; there is one each second

# --- overview ---
# a count this large takes some 20 ms; "or more" is enough for an operator
OVERVIEW_COUNT_MAX = 100_000
OVERVIEW_PENDING_MAX = 10_000  # ... also of one endpoint; beyond it a count of before is shown
OVERVIEW_COUNT_MS_MAX = 1_000  # a count of deliveries that takes longer is left out
OVERVIEW_STREAMS_MAX = 200  # of a zone, by name; the list of streams has all

# --- statistics of endpoints ---
ENDPOINT_STATISTICS_INTERVAL_S = 1.0  # between a worker's writes of the attempts that it counted
ENDPOINT_STATISTICS_MINUTES = 60  # shown, the present one included ...
ENDPOINT_STATISTICS_HOURS = 168  # ... and hours: a week. An endpoint has so many rows, of 0.3 KB
ENDPOINT_STATISTICS_DELETED_MAX = 10_000  # older rows of each step in one statement; some 50 ms

# --- health ---
HEALTH_CHECK_INTERVAL_S = 2.0  # between a web process's checks of the components; a few ms each
HEALTH_REQUESTED_S = 20.0  # while no request came for this long, checks are rarer:
HEALTH_REST_S = 10.0  # between two of them; a check stays valid for longer (HEALTH_STALE_S_MAX)
HEALTH_CHECK_MS_MAX = 1_000  # one statement of a check; one that takes longer is unknown
HEALTH_STALE_S_MAX = 20.0  # an older check does not describe the present
HEALTH_HEARTBEAT_INTERVAL_S = 20.0  # between heartbeats of the timetable
# a forwarder, worker or builder without a heartbeat for this long is gone; several missed ones
HEALTH_SILENT_S_MAX = 15.0
HEALTH_TIMETABLE_S_MAX = 65.0  # the same of the timetable; three heartbeats
HEALTH_TASK_S_MAX = 1_200.0  # between two starts of a periodic task; four rests of the timetable
HEALTH_DUE_S_MAX = 60.0  # from due to claimed; of a worker that died it is CALLBACK_CLAIM_S
HEALTH_ENDPOINTS_MAX = 500  # endpoints, and lanes, examined in one check; some 20 ms
HEALTH_ARCHIVE_S_MAX = 900.0  # from sealed to archived; a retry after a fault is within it
HEALTH_INDEX_S_MAX = 120.0  # from a build's request to its start, while no builder works
ENDPOINT_HEALTH_INTERVAL_S = 10.0  # between writes of an unchanged outcome of an endpoint

# --- matching ---
FILTER_CHARS_MAX = 16_384  # of its text; parsed in about 10 ms
TIME_SLICE_S = 0.005  # of long work on an event loop before other work runs
# of the texts of stored filters that a process keeps compiled; some 20 bytes for each
COMPILED_CHARS_CACHED_MAX = 2 * 1024 * 1024
COMPILED_FILTER_CHARS = 200  # that one filter counts for in addition to its text
FILTER_CHARS_INLINE = 256  # of a listener's: parsed on the event loop in about 1 ms, else aside
FILTER_DEPTH_MAX = 32  # nested forms
FILTER_PARTS_MAX = 1_000  # nodes of its tree
SIGNATURE_NAMES_MAX = FILTER_PARTS_MAX  # each of a filter's parts may demand another property
FILTER_ALTERNATIVES_MAX = 64  # conjunctions of its normal form ...
FILTER_PRODUCT_MAX = 1_024  # ... and of it before duplicates are left out
FILTER_STEPS_MAX = 30_000  # pairs of alternatives joined or compared for it: about 3 ms
# of an event's attributes and of filters: what JSON reads and writes exactly
INTEGER_MIN = -(1 << 63)
INTEGER_MAX = (1 << 64) - 1  # the greatest unsigned integer of 64 bits
ARITHMETIC_RESULTS_MAX = 100  # of one calculation with lists; with more it has no result
# to evaluate one expression of CESQL or CEL for an event, and in `within` for all its objects: each
# about 1 us, so 10 ms. It is not shared by the expressions of a filter, as strategies evaluate some
# of them, in another order, and must agree on the result.
EXPRESSION_STEPS_MAX = 10_000
FILTER_EXPRESSIONS_MAX = 16  # different ones: 160 ms for an event designed for it
EXPRESSION_CHARS_MAX = 65_536  # of the texts that one of its functions takes
# the cost for each event of one stream of one client's filters, or of one socket's: tests of about
# 2 us (registrations/filters/evaluation_cost.py), so 10 ms; 1.2 s for an event designed for it,
# less than a lease
FILTERS_TRIED_MAX = 5_000
FILTER_FOUND_FREE = 32  # free tests of a filter behind a value or range: few events reach it
FILTER_TESTS_MAX = 4_096  # in all conjunctions together: 64 of 64, as many as pairs may have
CLOSURE_ALTERNATIVES_MAX = 256  # of the interest in a stream, as producers are notified of it ...
CLOSURE_CHARS_MAX = 65_536  # ... and its text; beyond them it is wider, and less exact
CLOSURE_COMPARED_MAX = 200_000  # tests compared to leave out covered ones: about 1 s
CLOSURE_TESTS_MAX = 20_000  # of all these together: 14 MB, and 40 ms of a garbage collection
CLOSURE_FILTERS_MAX = 5_000  # different ones examined one by one; more are merged ...
CLOSURE_GROUPS_MAX = 1_000  # ... into groups that are alike but for one value ...
CLOSURE_VALUES_MAX = 20_000  # ... with this many values; into prefixes and ranges beyond it
CLOSURE_SCAN_MAX = 2_000_000  # registrations scanned for it, some 50 µs each, ...
CLOSURE_WORK_S = 0.002  # that a thread builds closures without a pause ...
CLOSURE_REST_S = 0.001  # ... and the pause, in which the event loop has the interpreter
CLOSURE_CHUNK = 2_000  # ... in chunks of this size; with more than the maximum it is everything
CLOSURE_ADDED_MAX = 2_000  # registrations added to a merged one; with more it is rebuilt
CLOSURE_WAIT_S = 5.0  # for a closure that is being built; meanwhile it is everything
CLOSURE_REBUILD_S = 10.0  # between rebuilds of a merged one, which take out ended filters ...
CLOSURE_REBUILD_SHARE = 20.0  # ... and at least this many times what the last one took
CLOSURE_EXPENSIVE_S = 1.0  # to build one for an audience; then a pause by the share above
CLOSURE_WAITING_MAX = 16  # for audiences of one stream, built in order; beyond it everything
CLOSURE_LISTENERS_MAX = 1_000  # different filters of listeners; with more it is everything
CLOSURES_CACHED_MAX = 256  # kept current by a process, of streams and audiences requested
CLOSURE_BARRIERS_MAX = 10_000  # changes between two checks; with more every closure is rebuilt
INTERESTS_PER_SOCKET_MAX = 64  # that one websocket is notified of
INTERESTS_PER_PROCESS_MAX = 500  # subscribers; each costs a read of the database a second
INTEREST_PAUSE_S = 0.1  # between two notifications of changes to a subscriber ...
INTEREST_CHECK_S = 1.0  # ... and between checks of listeners, which nothing announces
LISTENER_INTEREST_S = 60.0  # a listener counts for this long after its last renewal
LISTENER_INTEREST_RENEW_S = 5.0  # between renewals of a process's listeners
INDEX_SHARD_ENTRIES_MAX = 16_000_000  # of a match index; its builder holds up to 600 bytes for each
# A build takes some 10 us of a core for each registration, and one that is due for each 20 of them
# that changed: at 1,000 changed versions a second a fifth of a core, however many registrations.
INDEX_DELTA_SHARE_MAX = 0.05  # of a match index that changed; beyond it a rebuild is due
INDEX_DELTA_MIN = 1_000  # changes that are worth it
INDEX_REFUSED_MAX = 100_000  # versions that no index can hold; its manifest names them
INDEX_CHARS_CACHED_MAX = 12 * 1024 * 1024  # of filters that a builder parsed: some 50,000, 50 MB
SPARK_INDEX_MIN = 1_000_000  # filters to parse, from which on Spark on two cores is faster
INDEX_CHECK_INTERVAL_S = 1.0  # between a forwarder's checks for newer indexes: a stat per stream
INDEX_INLINE_SHARE = 0.25  # the same where matching waits for it: constant work for each change
INDEX_AUTO_MIN = 50_000  # registrations from which on `auto` builds an index
TIER_TESTS_FIRST = 500  # evaluated, some 1 ms: then an index in memory is worth building ...
TIER_TESTS_EACH = 10  # ... with this many more for each registration in it, some 25 us
TIER_REGISTRATIONS_MAX = 1_024  # in one; a build takes some 25 ms, for which one event waits
INDEX_PATHS_CACHED_MAX = 10_000  # names of attributes, in one engine; events bring new ones
INDEX_PATH_CACHED_CHARS_MAX = 128  # of such a name; a longer one is looked up in each event
INDEX_BUILD_S_MAX = 2 * 3_600  # one build; 10,000,000 registrations take minutes of a free core
INDEX_IDLE_INTERVAL_S = 5.0  # between such checks by one that forwards no stream
INDEX_DUE_INTERVAL_S = 30.0  # between a worker's counts of changes since an index was built
INDEX_BUILD_RETRY_S_BASE = 60.0  # after a failed build; each next pause is twice as long
INDEX_BUILD_RETRY_S_MAX = 3_600.0  # a repaired cause is noticed within the hour
INDEX_BUILD_HEARTBEAT_S = 1.0  # between a builder's reports of progress
INDEX_BUILD_SILENT_S = 15.0  # a builder without a heartbeat for this long is dead or stopped
# an ended version is retained for this long in any case: for processes that follow changes with a
# delay, and for Spark jobs with an older snapshot
VERSIONS_RETAINED_S = 24 * 3_600.0
VERSIONS_PURGED_AT_ONCE = 5_000  # examined in one transaction: some 100 ms
VERSIONS_PURGE_S_MAX = 60.0  # one run of the task; a million a run
INDEX_BUILD_NICENESS = 10  # matching goes first; a build gets a tenth of a forwarder's share
EXPLAIN_VALUES_MAX = 5  # of a list that a test evaluated; enough to recognize it
EXPLAIN_OBJECTS_MAX = 20  # of a list that an explanation searches for the nearest
EXPLAIN_CHARS_MAX = 100  # of a text that a test evaluated; a filter may test it a thousand times
REPORT_FIELDS_MAX = 64  # of a registration's report; read from each event that matches
REPORT_BYTES_MAX = 8 * 1024  # of it as JSON; each version of a registration stores its own
REPORTS_CACHED_MAX = 10_000  # different ones, parsed, in one process
PATH_CHARS_MAX = 1_024  # a pair's name; every event's objects are opened along such paths

# --- explain ---
EXPLAIN_SLICE_S = 0.004  # of work in a web process before other work runs
EXPLAIN_PER_PROCESS_MAX = 4  # dry runs and searches for matches at a time; each takes a core
EXPLAIN_PER_CLIENT_MAX = 2  # of these, in one process
MATCHES_SCANNED_MAX = 20_000  # registrations that one answer scans; about 2 s ...
MATCHES_S_MAX = 2.0  # ... and for at most this long; `next` continues
MATCHES_PAGE = 500  # registrations read at once; some 10 ms
MATCHES_SHOWN_MAX = 100  # registrations that matched, in one answer; their number has no bound
NEAREST_SHOWN_MAX = 10  # misses in one answer; a person reads no more
DRY_RUN_EVENTS_DEFAULT = 10_000  # the last ones; about a second
DRY_RUN_EVENTS_MAX = 1_000_000  # that one run evaluates ...
DRY_RUN_S_MAX = 30.0  # ... and for at most this long; it reports where it stopped
DRY_RUN_BUCKETS_MAX = 240  # counts over time; a plot has some 500 pixels
DRY_RUN_SAMPLES_DEFAULT = 3  # of the first, and of the last, events that matched
DRY_RUN_SAMPLES_MAX = 10  # the same; each may be large
DRY_RUN_PROGRESS_S = 0.25  # between two lines of progress

# --- client ---
CLIENT_PAUSE_S_MIN = 0.05  # before the first retry; then twice as long each time
CLIENT_PAUSE_S_MAX = 5.0  # a hub that is available again is found within it
CLIENT_ATTEMPTS_MAX = 3  # to start something a person waits for; once started, without end
CLIENT_POLL_S = 25  # one long poll; below the 30 s after which proxies commonly time out
CLIENT_SILENCE_S = 45.0  # three heartbeats of the hub; then the connection counts as dead
CLIENT_CONFIRM_S_MAX = 5.0  # to confirm that a closure is current; then everything is sent
CLIENT_PAGE_EVENTS = 500  # one page of history; about a read of the hub's
OUTBOX_BYTES_MAX = 1024 * 1024 * 1024  # a queue's file; beyond it emit refuses, the disk stays free
OUTBOX_BATCH_EVENTS = 500  # released in one request; half of what the hub accepts
OUTBOX_BATCH_BYTES = 4 * 1024 * 1024  # of one such request; half of what the hub accepts
OUTBOX_INTERVAL_S = 1.0  # FOX's Δt: between checks of the timers of events under way
OUTBOX_TIMEOUT_S = 10.0  # FOX's T, twice what the hub may take: then it is sent again
CURSOR_FILE_S = 0.1  # between writes of a command's cursor; a crash repeats what came since
PROGRAM_TIMEOUT_S = 60.0  # of a program that the command line runs for an event
FORWARD_LOCAL_TIMEOUT_S = 12.0  # of a receiver; as long as the hub's own callbacks wait
RELAY_BATCH_EVENTS = 100  # emitted in one request of a relay, of up to 1 MiB; as many more wait
RELAY_RETRY_S = 3_600.0  # a relay waits this long for an unavailable hub, then exits with a status
CONSUMER_ATTEMPTS = 3  # of a program or receiver, before an event counts as failed
OUTBOX_HELD_S = 30.0  # after a refusal that an operator may end: a key, a grant, a stream

# --- orders of delivery ---
# events of one session that its cursor has not passed; one can be overtaken by at most so many
SESSION_QUEUE_EVENTS_MAX = 10_000
SESSION_QUEUE_BYTES_MAX = 16 * 1024 * 1024  # in memory, of events that one session has still to get
SESSION_QUEUES_BYTES_TOTAL_MAX = 128 * 1024 * 1024  # of all sessions of a process; beyond it ...
SESSION_QUEUE_SCARCE_BYTES_MAX = 128 * 1024  # ... each may hold so many
ORDER_OCCUR_DELAY_MS_DEFAULT = 1_000  # of a timestamp order that states none
ORDER_HOLD_MS_DEFAULT = 1_000  # likewise of a causal order
ORDER_HOLD_MS_MAX = 60_000  # for which any order may hold an event
ORDER_NAMES_MAX = 20_000  # ids, producers or types that an order remembers; the oldest go first

# --- listening ---
TIME_CHARS_MAX = 40  # a start given as a time; RFC 3339 with a fraction takes 35
LISTEN_FIRST_PAGE_EVENTS_MAX = 128  # a listener's first read: its first event comes soon
SESSION_FIRST_PAGE_EVENTS_MAX = 32  # likewise of a session, which matches each before the first
LISTEN_PAGE_EVENTS_MAX = 1_024  # one read of a listener that catches up; it holds two of them
LISTEN_PAGE_BYTES_MAX = 512 * 1024  # of stored bytes; the same page
# of pages that all listeners of a process hold; beyond it they read unsent events again
LISTEN_PAGES_BYTES_TOTAL_MAX = 64 * 1024 * 1024
LISTEN_EVENTS_PER_SLICE_MAX = 512  # events that a listener examines before other work runs ...
LISTEN_TESTS_PER_SLICE_MAX = 8_192  # ... and tests of its filter for them: about 10 ms
POLL_TIMEOUT_S_MAX = 60  # a long poll; proxies commonly time out soon after
HISTORY_EVENTS_DEFAULT = 100  # a page of history in JSON
HISTORY_EVENTS_MAX = 1_000  # the same
HISTORY_BYTES_MAX = 1024 * 1024  # of stored bytes in a page of history; always one event
HISTORY_SCANNED_MAX = 20_000  # events scanned for one page; its cursor moves on
HISTORY_S_MAX = 3.0  # the same, in time
QUERY_FIELDS_MAX = 32  # parameters of a URL; a listener has fifteen
QUERY_NAMES_MAX = 64  # channels in a URL
STREAM_WRITE_EVENTS_MAX = 256  # sent over HTTP in one write
STREAM_WRITE_BYTES_MAX = 256 * 1024  # of stored bytes; the same write
SSE_RETRY_MS = 1_000  # until an EventSource reconnects

# --- MCP ---
MCP_BODY_BYTES_MAX = 256 * 1024  # of one message: a filter, or the arguments of a tool
MCP_TOOL_BYTES_MAX = 2 * 1024 * 1024  # of the result of a tool: a page of events
MCP_TOOLS_TTL_MS = 60_000  # for which a client may keep the list of tools, which its grants decide
MCP_TTL_S_DEFAULT = 86_400  # of a subscription that suggests none: refreshing daily costs nothing
MCP_TTL_S_MIN = 300  # so that refreshes are no load
MCP_TTL_S_MAX = 30 * 86_400  # deliveries to a client that has gone end by themselves
MCP_RETRY_SCHEDULE_S = (5, 30, 120, 600)  # the quarter of an hour that SEP-3415 recommends
MCP_SECRET_OVERLAP_S = 3_600  # for which deliveries are signed by the secret before, too
MCP_VERIFICATION_S_MAX = 15.0  # for a receiver's agreement: an attempt takes 12 s at most
MCP_FAREWELL_S = 900.0  # for which a receiver is notified that its subscription has ended
MCP_FAREWELL_PAUSE_S = 60.0  # between two attempts at it
MCP_VERIFICATION_INTERVAL_S = 0.1  # between looks for it, one statement each
MCP_ID_CHARS_MAX = 200  # of the id of a request, which every notification of its stream repeats
MCP_TYPES_PER_PAGE = 100  # event types with their schemas, 16 KiB each, in one answer
MCP_STREAMS_NAMED_MAX = 100  # names of streams in each schema; above it they are not enumerated
MCP_DISCOVERY_TTL_MS = 3_600_000  # for which a client may keep what the server can do
MCP_POLL_INTERVAL_MS = 5_000  # suggested to pollers; who needs less latency opens a stream
MCP_AGE_MS_MAX = 10 * 365 * 86_400_000  # an older start is `oldest` in effect, and stays a time
STATE_COPY_KEYS_MAX = 2_000  # copied in one statement before their segment is dropped; some 50 ms
STATE_PAGE_KEYS_MAX = 512  # one read of a stream's state
STATE_PAGE_BYTES_MAX = 512 * 1024  # of stored bytes; the same read
STATE_READS_MAX = 16  # for one page, past keys for other audiences; at most 8 MB

# --- archive ---
ARCHIVE_ROW_GROUP_EVENTS_MAX = 4_096  # decoded for the sake of one event: some 5 ms
ARCHIVE_ROW_GROUP_BYTES_MAX = 16 * 1024 * 1024  # of stored bytes; bounds the memory of both sides
ARCHIVE_ATTRIBUTES_MAX = 256  # names with a column of their own in one file; the JSON text has all
ARCHIVE_NAMES_MAX = 10_000  # counted to find those; rarer names get no column
ARCHIVE_SHAPES_MAX = 1_000  # distinct sets of names and types; a stream has a few
ARCHIVE_PRODUCERS_MAX = 10_000  # listed in a manifest; some 80 bytes each
ARCHIVE_STATEMENT_S_MAX = 30  # one page of rows; a disk at its limit still returns it
ARCHIVE_LEASE_S = 60.0  # until another archiver takes over; longer than syncing a large file
ARCHIVE_RENEW_INTERVAL_S = 5.0  # between renewals of a working archiver's lease
ARCHIVE_SEGMENTS_PER_SCAN_MAX = 100  # found at once; the list is read again after them
ARCHIVE_RETRY_S_BASE = 60.0  # after a failed attempt; each next pause is twice as long
ARCHIVE_RETRY_S_MAX = 3_600.0  # a repaired archive is used within the hour
ARCHIVE_FAILURES_SHOWN_MAX = 100  # in one status; the oldest show what is wrong
ARCHIVE_FILES_OPEN_MAX = 16  # descriptors of one process; also readers of as many streams
ARCHIVE_CACHED_BYTES_MAX = 64 * 1024 * 1024  # row groups cached in one process for sequential reads
ARCHIVE_CHUNK_BYTES = 256 * 1024  # of a file that is sent or checked

# --- back-test ---
BACKTEST_SAMPLE_DEFAULT = 100  # matching events listed in a result
BACKTEST_SAMPLE_MAX = 1_000  # what a person looks through
BACKTEST_SAMPLE_CHARS_MAX = 2_000  # an event's attributes as JSON; longer ones are omitted
BACKTEST_BUCKETS_MAX = 300  # intervals of the plot over time
BACKTEST_CSV_ROWS_MAX = 100_000  # what a spreadsheet opens; Parquet has all
BACKTEST_SKIPPED_LISTED_MAX = 200  # segments listed in the result; Parquet has all
BACKTEST_PATTERN_S_MAX = 4 * 3_600.0  # for which a pattern is fed, twice at most: see JOB_S_MAX
BACKTEST_OUTPUT_CHARS_MAX = 20_000  # an output as JSON; of a longer one its bindings are omitted
BACKTEST_OUTPUTS_BYTES_MAX = 4 * 1024 * 1024  # of the outputs that a result lists
BACKTEST_WAITING_BYTES_MAX = 512 * 1024  # of the partial matches of one task, and of a result
BACKTEST_LOCAL_EVENTS_MAX = 200_000  # searched without Spark: by one core, in its time to start
BACKTEST_LOCAL_BYTES_MAX = 64 * 1024 * 1024  # of them, which one process holds
BACKTEST_LOCAL_SEGMENTS_MAX = 200  # which it reads one after the other
BACKTEST_REQUESTED_BYTES_MAX = 512 * 1024 * 1024  # of them where `local` is requested
BACKTEST_TASKS_MAX = 2_000  # a segment each up to here; a task costs Spark some 10 ms

# --- inputs of jobs ---
# after a type was declared: then the declaration is committed, and known to every process
AUDIT_DECLARED_S = 60.0
AUDIT_CLOCKS_S = 60.0  # by which clocks of the hub's machines may differ
EXPORT_STATEMENT_S_MAX = 3_600.0  # one table of a job's inputs; 20 M events take some minutes
SNAPSHOT_ALIVE_INTERVAL_S = 2.0  # the database ends a statement whose reader has died
EXPORT_PROGRESS_INTERVAL_S = 0.5  # between reports of an export, at which it can be cancelled
EXPORT_MISSING_MAX = 1_000  # sequences listed of one segment; their count is complete
EXPORT_MANIFESTS_AT_ONCE = 16  # read from the archive, which may be remote

# --- jobs ---
JOB_LEASE_S = 15.0  # without a heartbeat, after which a run has no runner and the next may start
JOB_HEARTBEAT_S = 1.0  # between a runner's reports, at which it learns that it is to end
JOB_S_MAX = 12 * 3_600.0  # one run; half a day for a daily job
JOB_STOP_S = 5.0  # Spark may end by itself when asked; then it is killed
JOB_STOPPED_S_MAX = 20.0  # a run that was asked to end and has not: its process ends itself
JOB_RUNS_RETAINED = 100  # of each job with their results; three months of a daily one
# the files of one result: some five tables of an audit that are cut at AUDIT_ROWS_MAX; a larger
# result fails, with advice how to request less
JOB_RESULT_BYTES_MAX = 2 * 1024 * 1024 * 1024
# all retained results: the newest of each of the four jobs always fits
JOB_RESULTS_BYTES_MAX = 4 * JOB_RESULT_BYTES_MAX
JOB_RUNS_WAITING_MAX = 20  # of all jobs; each takes minutes
JOB_STREAMS_MAX = 1_000  # named for one run; beyond it the run is of the whole zone
JOB_LOG_BYTES_MAX = 8 * 1024 * 1024  # of a run; the older half is dropped
JOB_LOG_SHOWN_BYTES = 256 * 1024  # its end, as the API returns it
JOB_DETAIL_CHARS_MAX = 1_000  # the reason why a run failed
JOB_FILE_CHUNK_BYTES = 256 * 1024  # of a result's file that is sent
JOB_PARTITIONS_PER_CORE = 4  # of a shuffle on one machine; smaller ones fit into memory
JOB_JAVA_S_MAX = 15.0  # one `java -version`: two seconds on a slow disk, twelve on a busy machine
JOB_JAVA_ATTEMPTS = 4  # in one run: a minute
JOB_ATTEMPTS_MAX = 5  # of a scheduled run, with the first: a longer fault needs a person
JOB_BACKOFF_S = 300.0  # before the first retry; restarted components are back
JOB_BACKOFF_GROWTH = 3  # factor of each further pause: 5, 15, 45, 135 minutes
JOB_REQUEST_RETRY_PAUSE_S = 120  # between attempts to request a scheduled run, while ...
JOB_REQUEST_RETRIES_MAX = 25  # ... the database is unavailable: within the hour
JOB_RETRY_WITHIN_S = 6 * 3_600.0  # of its request; later it would take the day's resources

# --- retention plans ---
PLAN_SHOWN_SEGMENTS_MAX = 500  # of a plan in its result; the CSV and Parquet files have all
PLAN_SHOWN_STREAMS_MAX = 200  # likewise; those that hold the most
PLAN_PLOT_STREAMS_MAX = 20  # bars of the report's plot; more are not read
PLAN_POLICIES_MAX = 1_000  # streams with a proposed policy in one plan
PLAN_APPLY_S_MAX = 20.0  # one request; the next one continues
PLAN_OUTCOMES_SHOWN_MAX = 500  # in one answer; refused ones first

# --- audit ---
AUDIT_LATE_S = 60.0  # from append to delivered; a healthy endpoint is notified within a second
AUDIT_SHOWN_MAX = 200  # findings, streams, clients in a result's details; its files have all
# of one table of a result: what a spreadsheet opens (1,048,576), some 130 MB as CSV
AUDIT_ROWS_MAX = 1_000_000
AUDIT_EVIDENCE_REGISTRATIONS_MAX = 20  # named by the evidence of one finding
AUDIT_HOURS_MAX = 2_400  # of a result's plots: 100 days
AUDIT_TASKS_PER_CORE = 32  # that read segments: some 16 s of work each at 20,000,000 events

# --- migrations ---
MIGRATE_LOCK_MS_MAX = 100  # for a table's lock, while others wait behind it
# between two statements of a migration: Django works out the models' next state meanwhile, which
# takes seconds on a busy machine
MIGRATE_IDLE_S_MAX = 30
MIGRATE_PAUSE_S = (0.1, 1.0)  # between two attempts to get it
MIGRATE_S_MAX = 300.0  # of attempts

# --- patterns over several events ---
PATTERN_CHARS_MAX = FILTER_CHARS_MAX  # of its text
PATTERN_ELEMENTS_MAX = 32  # each is a filter that the group evaluates for every event
PATTERN_DEPTH_MAX = 64  # parts within parts; a row of elements with an action each
PATTERN_ACTIONS_MAX = 32  # one for each element
PATTERN_ATTRIBUTES_MAX = 64  # of an event that a pattern creates
PATTERN_WITHIN_S_DEFAULT = 24 * 3600  # that a match may span: incidents rarely take longer
PATTERN_WITHIN_S_MAX = 30 * 24 * 3600  # what is waited for longer belongs into keyed state
PATTERN_LAST_DEFAULT = 100  # events that a match may span
PATTERN_LAST_MAX = 10_000  # some 3 MB of one partition
# partitions of one pattern at a time; beyond it those without an event for longest are discarded
PATTERN_KEYS_MAX = 10_000
PATTERN_BYTES_MAX = 8 * 1024 * 1024  # of one pattern's state in memory: 800 bytes for each key
PATTERN_GROUP_BYTES_MAX = 128 * 1024 * 1024  # of all patterns of a group; a state is saved whole
# of all groups of a forwarder: four large ones; an idle one has 100 MB
PATTERN_PROCESS_BYTES_MAX = 512 * 1024 * 1024
PATTERN_STEPS_MAX = 20_000  # of the search for one event and pattern: about 20 ms
PATTERN_STEPS_AT_ONCE = 250  # then other groups may run: some 0.5 ms
PATTERN_HOPS_MAX = 8  # outputs in a row that cause each other: more is a loop of patterns
PATTERN_CAUSES_NAMED_MAX = 100  # cursors in an output's environment: 6 KB
PATTERN_BOUND_NAMED_MAX = 200  # events that an output names: 20 KB of its attributes
PATTERN_READ_EVENTS_MAX = 512  # of one stream at a time, which then waits for the others
PATTERN_OUTPUTS_PER_WRITE = 1_000  # then they are written: some 40 ms and 1 MB of WAL
PATTERN_OUTPUTS_PER_EVENT_MAX = 10_000  # of all patterns of a group; it has as many patterns
PATTERN_OUTPUT_BYTES_PER_EVENT_MAX = 16 * 1024 * 1024  # likewise; one transaction has them all
PATTERN_RATE_WAIT_S_MAX = 1.0  # then a group looks whether its quota of events has changed
PATTERN_OUTPUT_BYTES_PER_WRITE = 4 * 1024 * 1024  # then they are written
PATTERN_WRITE_EVENTS_MAX = 4_000  # events without outputs between two writes
PATTERN_IDLE_CHECKPOINT_S = 60.0  # of a group without patterns; retention waits for so long
PATTERN_SNAPSHOT_EVENTS_MAX = 200_000  # between two snapshots: a restart feeds them again
PATTERN_SNAPSHOT_INTERVAL_S = 10.0  # at least; a restart feeds what came since
PATTERN_SNAPSHOT_SHARE = 0.05  # of a runner's time for snapshots at most: a large one comes later
PATTERN_UNREADABLE_RETRY_S = 30.0  # a group whose state cannot be read; a change of it comes first
PATTERN_SLICE_S = 0.001  # of a group's work before others run; timers are no finer
PATTERN_SLICE_PAUSE = 4.0  # times a slice, after those of clients that used more than another one
PATTERN_OUTPUT_S = 40e-6  # that writing one output counts as time of its client ...
PATTERN_OUTPUT_KB_S = 20e-6  # ... and each 1,000 bytes of it: a large insert writes 50 MB/s
PATTERN_USED_S = 1.0  # in which a client's use of time is forgotten, except for a third
PATTERN_USED_FREE_S = 0.02  # without a pause: what 100 short runs take
PATTERN_LAG_INTERVAL_S = 1.0  # between two reports of the lag of groups

# --- groups of patterns ---
PATTERN_GROUPS_PER_CLIENT_MAX = 1_000  # each has a lease and a task in a forwarder
PATTERN_GROUP_STREAMS_MAX = 16  # each is read by the group's task
PATTERNS_PER_CLIENT_MAX = 100_000  # some 300 MB with their texts; a quota may be lower
PATTERNS_PER_GROUP_MAX = 10_000  # compiled by each process that takes over the group: some 10 s
PATTERNS_PER_REQUEST_MAX = 1_000  # parsed and stored in some 2 s
END_PATTERN_GROUPS_MAX = 100  # of one client, with a deleted stream in one transaction
PATTERN_DRY_RUN_EVENTS_MAX = 1_000  # a person reads the steps; of a stream, read in some 2 s
PATTERN_DRY_RUN_EVENTS_DEFAULT = 100  # of a stream
PATTERN_DRY_RUN_S_MAX = 10.0  # of a dry run, in a thread of a web process
# read and fed again for one look at a pattern's partial matches: some 3 s
PATTERN_WAITING_EVENTS_MAX = 20_000
PATTERN_WAITING_KEYS_MAX = 100  # partitions in one answer
PATTERN_WAITING_S_MAX = 10.0  # to compute one answer, in a thread of a web process
PATTERN_TRIALS_MAX = 4  # dry runs and partial matches of a process at once, each of another client
PATTERN_TRIAL_WAIT_S_MAX = 1.0  # for another dry run of the process, with a database connection
PATTERN_BOUND_SHOWN_MAX = 100  # events of one variable that an answer shows; people read it
PATTERN_ANSWER_BYTES_MAX = 4 * 1024 * 1024  # of the steps or partitions of one answer, about
PATTERN_WAITING_RETRY_S = 10  # until the next snapshot: PATTERN_SNAPSHOT_INTERVAL_S

# --- temporal patterns ---
TEMPORAL_MEMORY_DEFAULT = 1_000  # most recent events of the stream that a pattern remembers ...
TEMPORAL_MEMORY_MAX = 10_000  # ... at most: a join without an equality looks at all that match
TEMPORAL_EVENTS_MAX = 8  # of one pattern: each is one more join for every event
TEMPORAL_VARIABLES_MAX = 64  # of one pattern; people read it
TEMPORAL_ARGUMENTS_MAX = 16  # of one comparison; that all differ is a test of each two of them
TEMPORAL_TESTS_MAX = 256  # comparisons of two values in one pattern
TEMPORAL_VALUE_CHARS_MAX = 1_024  # of a text that a variable is bound to; longer ones do not match
# of one pattern; some 0.2 kB each. More, and the pattern forgets the older half of its events
TEMPORAL_PARTIAL_MATCHES_MAX = 10_000
# of all patterns on the same streams, some 100 MB. More, and those with the most forget
TEMPORAL_PARTIAL_MATCHES_SUM_MAX = 500_000
TEMPORAL_JOINS_PER_EVENT_MAX = 20_000  # examined for one pattern: 20 ms; more, likewise
TEMPORAL_JOINS_AT_ONCE = 250  # then other groups may run: some 0.5 ms
TEMPORAL_JOINS_RECALLED_MAX = 1_000_000  # for the old events that a new pattern recognises: 2 s
TEMPORAL_MATCHES_PER_EVENT_MAX = 1_000  # of one pattern; only the most recent are reported
# remembered for all patterns on the same streams; some 0.6 kB each. More, and the largest forget
TEMPORAL_ENTRIES_MAX = 200_000
TEMPORAL_SHOWN_MAX = 100  # partial matches of one pattern in an answer

# --- agents ---
PROGRAM_CHARS_MAX = 16_384  # of its text; compiled in some 10 ms
PROGRAM_PARTS_MAX = 2_000  # words and constants of its text
PROGRAM_DEPTH_MAX = 64  # nested forms; the compiler calls itself for each
AGENT_STEPS_MAX = 20_000  # of one run: some 10 ms
AGENT_STEPS_AT_ONCE = 500  # then other groups may run: some 0.25 ms
AGENT_CHARS_PER_STEP = 64  # of texts that a function reads or copies, for one step more
AGENT_MEMORY_BYTES_MAX = 2 * 1024 * 1024  # of all values that one run creates, though they may end
AGENT_CALL_DEPTH_MAX = 1_000  # functions that wait for another; a frame has some 0.2 kB
AGENT_TEXT_CHARS_MAX = 65_536  # of one text; an event's attributes have no longer one
AGENT_LIST_ITEMS_MAX = 10_000  # of one list or object
AGENT_VALUE_DEPTH_MAX = 32  # lists and objects in each other, as in JSON; recursion is safe then
AGENT_OUTPUTS_MAX = 16  # notifications and announced events of one run
AGENT_NOTIFIED_EVENTS_MAX = 100  # in one notification
AGENT_STATE_BYTES_MAX = 16 * 1024  # of what one agent remembers; saved with each checkpoint
AGENT_STATE_KEYS_MAX = 64  # names in it; people read it
AGENT_FAILURES_MAX = 10  # failed runs in a row, then the agent is suspended
AGENT_RECENT_MAX = 1_000  # most recent events that an agent examines
# of the recent events of all agents on the same streams; saved with each checkpoint
AGENT_RECENT_BYTES_MAX = 4 * 1024 * 1024
