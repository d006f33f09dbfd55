"""Every bound of the hub, with its unit in its name and its reason beside it. Plain module.

Plain numbers; nothing imports from here by `*`, and no bound lives anywhere else.
"""

# --- emit ---
BODY_BYTES_MAX = 8 * 1024 * 1024  # one request; 1,000 events of 8 KiB
# one request; 1,000 rows commit in 3 ms, so nobody waits long behind a batch
BATCH_EVENTS_MAX = 1_000
EVENT_BYTES_MAX = 1024 * 1024  # stored bytes; a ring of 32 MiB still holds 32 of the largest
BODY_TIMEOUT_S_MAX = 20  # a body that trickles holds a connection, not a worker; still it ends
HEAD_BYTES_MAX = 64 * 1024  # request line and headers, or what follows the last chunk
HEADERS_TIMEOUT_S_MAX = 10  # also for a connection that says nothing at all
JSON_DEPTH_MAX = 32  # nesting of attributes or body; deeper JSON is nearly always an attack
ATTRIBUTES_BYTES_MAX = 64 * 1024  # encoded; every matcher reads them for every event
ATTRIBUTES_COUNT_MAX = 256  # names at the top level
ATTRIBUTES_VALUES_MAX = 1_000  # in lists and objects too; each may be looked at by every filter
NAME_CHARS_MAX = 200  # streams, channels, clients, zones
TEXT_CHARS_MAX = 1_024  # envelope texts: domain, type, key, node, correlation, ...
LIST_ITEMS_MAX = 64  # application, depends, destinations, audience
ENVIRONMENT_BYTES_MAX = 16 * 1024  # encoded annotations

# Requests of the emit route that one web process parses and appends at a time, in places: others
# wait in fair order, for as long as a group commit of so many takes, some 10 ms.
EMIT_SLOTS = 64
EMIT_SLOTS_PER_CLIENT = 16  # while others emit too: they wait for so much of one client, at most
CONTENTION_S = 5.0  # a client is alone again when no other one came for so long
EMIT_BYTES_PER_SLOT = 16 * 1024  # a request takes a place more for so much of its body
# places that may wait in one process, for all and for one client: 128 and 32 MiB of bodies
EMIT_WAITING_MAX = 8_192
EMIT_WAITING_PER_CLIENT_MAX = 2_048  # a quarter
EMIT_WAIT_S_MAX = 2.0  # then the answer is 429 or 503: a queue of seconds helps nobody

# --- types ---
TYPE_SCHEMA_BYTES_MAX = 16 * 1024  # one definition, as JSON; read by people
TYPE_SCHEMA_NODES_MAX = 1_000  # schemas in it with references written out: what one value may cost
TYPE_SCHEMA_DEPTH_MAX = 64  # steps of a path into it; attributes end at JSON_DEPTH_MAX
TYPE_SCHEMA_VALUES_MAX = 10_000  # in its enums and the like, written out: 16 KiB have no more
TYPE_PATTERN_BYTES_MAX = 64 * 1024  # a compiled pattern
TYPE_PATTERNS_MAX = 100  # in one definition, written out
TYPE_WORK_UNCOUNTED_MAX = 20_000  # units of about 40 ns; a small event costs no counting
TYPE_WORK_PER_SLICE_MAX = 100_000  # 4 ms, then others have their turn
TYPE_WORK_PER_EVENT_MAX = 1_000_000  # 40 ms: nothing can run meanwhile
TYPE_WORK_PER_REQUEST_MAX = 20_000_000  # 0.8 s of one core; BATCH_EVENTS_MAX that were not counted
TYPE_VERSIONS_PER_ZONE_MAX = 1_000  # all types together: 16 MB in each process at the very most
TYPE_PARENTS_MAX = 8  # above one type: each is one more validation
TYPE_BREAKS_SHOWN_MAX = 20  # of a version that is refused
TYPE_ZONES_CACHED_MAX = 1_000  # in one process

# --- codecs ---
# of a CloudEvent in binary mode; what servers commonly take in all headers
CE_HEADERS_BYTES_MAX = 8 * 1024
XML_DEPTH_MAX = 8  # FOX's schema of an event has four levels
XML_ELEMENTS_MAX = 256  # the schema's own, and two lists of LIST_ITEMS_MAX

# --- append ---
APPEND_EVENTS_MAX = 4_000  # one transaction of the group commit: about 10 ms
APPEND_BYTES_MAX = 16 * 1024 * 1024  # one transaction; bounds the memory of the statement
# waiting in one process; beyond it emit answers 503 `overloaded`
APPEND_WAITING_EVENTS_MAX = 50_000
APPEND_WAITING_BYTES_MAX = 128 * 1024 * 1024
APPEND_WAITING_EVENTS_PER_CLIENT_MAX = 25_000  # beyond it: 429 for that client alone
STATEMENT_TIMEOUT_S_MAX = 4  # the server gives up before we do: then nothing was stored
# between two statements of a transaction: what a stopped process held is free before others give up
TRANSACTION_IDLE_S_MAX = 3
# the same for a transaction that only reads, and may read an archive far away meanwhile
READING_IDLE_S_MAX = 30
APPEND_TIMEOUT_S_MAX = 5  # one transaction; a stopped PostgreSQL gives 503, not a hanging caller
PRODUCER_WINDOW = 4_096  # recent numbers kept per producer; at least four times BATCH_EVENTS_MAX
# incarnations held at once; the least recently seen expire first
PRODUCERS_PER_CLIENT_STREAM_MAX = 1_000
PRODUCER_EXPIRY_S = 7 * 24 * 3600  # a superseded incarnation not seen for so long is forgotten
NOTIFY_INTERVAL_S = 0.002  # NOTIFY at most once per stream in this time

LOG_REPEAT_S = 10.0  # what is tried again and again is logged so often
CONNECT_TIMEOUT_S = 3  # one attempt to reach PostgreSQL
RECONNECT_PAUSE_S = 0.2  # after a failed attempt, callers get 503 at once for so long
RECONNECT_PAUSE_S_MAX = 1.6  # of whom nobody waits for: each pause is twice as long

# --- segments ---
SEGMENT_EVENTS_DEFAULT = 100_000
SEGMENT_EVENTS_MAX = 10_000_000
SEGMENT_BYTES_DEFAULT = 64 * 1024 * 1024
SEGMENT_BYTES_MAX = 4 * 1024 * 1024 * 1024
PARTITION_BYTES_MAX = (
    1024 * 1024 * 1024
)  # a partition; rolled segments go to the next one beyond it
PARTITIONS_LIVE_MAX = 1_000  # partitions; 4,000 cost 278 ms on a query without the key
PRODUCER_SWEEP_INTERVAL_S = 600.0  # how often old producers are looked for
STREAMS_PER_ZONE_MAX = 10_000

# --- policies of streams ---
SEGMENT_AGE_S_MAX = 366 * 24 * 3600  # an audit stream that rolls once a year
RETAIN_EVENTS_MAX = 10**15  # every number up to here is exact in JavaScript too
RETAIN_BYTES_MAX = 1 << 50  # 1 PiB, more than one hub has
RETAIN_AGE_S_MAX = 100 * 366 * 24 * 3600  # what an archive law may ask for
ACTION_CHARS_MAX = 200  # the id of an action, in a header and in each event that it causes
RESTATE_KEYS_MAX = 200  # told again in one transaction: the stream's head is held for some 10 ms

# --- retention ---
PARTITION_BYTES_MIN = 4 * 1024 * 1024  # a smaller partition is mostly its own index pages
PARTITIONS_PER_CAPACITY = (
    16  # partitions in a quota or on a disk: what goes at once is a small part
)
RETAIN_CHECK_INTERVAL_S = 1.0  # how often retention looks when there is room enough
RETAIN_IDLE_INTERVAL_S = 10.0  # and while nothing was stored for RETAIN_IDLE_AFTER_S
RETAIN_IDLE_AFTER_S = 10.0  # what was stored until then may still have something due
RETAIN_BUSY_INTERVAL_S = 0.25  # and with little space on the disk
RETAIN_CHECK_INTERVAL_S_MIN = 0.02  # and just below where emits are refused
RETAIN_GROWTH_BYTES_PER_S = 64 * 1024 * 1024  # as fast may the data grow, indexes and all
# of what is free below the quota: so much may one process store until it is measured anew, however
# late that comes; processes, and the tables' own pages, share the rest
QUOTA_SHARE_UNMEASURED = 0.2
QUOTA_MEASURE_S_MAX = 5.0  # so long an emit waits for that
EVENT_BYTES_MIN = 200  # of an event's row and its entries in indexes, besides its stored bytes
RETAIN_SYSTEM_S_MIN = 3_600.0  # so long a segment of `system` stays, whatever the quota says
RETAIN_SEGMENTS_MAX = 1_000  # dropped in one transaction: rows updated, and events of `system`
RETAIN_STREAMS_MAX = 200  # sealed in one transaction; their heads are held together
RETAIN_FAULT_PAUSE_S = 1.0  # after the database refused or was away
QUOTA_BYTES_MIN = 32 * 1024 * 1024  # below it the groups' own pages are a large part
QUOTA_SHARE_ACT = 0.80  # of the quota: above it the oldest segments go ...
QUOTA_SHARE_GOAL = 0.70  # ... until so much is left
QUOTA_EPISODE_S = 600.0  # it is announced again when nothing went for so long
QUOTA_SHARE_CLEAN = 0.88  # up to it cleaning may copy, which frees more in the end
QUOTA_SHARE_CLEAN_MIN = 0.04  # so much in any case: a little that lives must not keep a group
QUOTA_SHARE_REFUSE = 0.92  # above it emits get 507, so that the disk stays below the quota
# of a group's stored bytes that may still be live when it is cleaned: what is copied then is no
# more than what it frees
CLEAN_LIVE_SHARE_MAX = 0.5
CLEAN_LIVE_SHARE_PRESSED_MAX = 0.8  # the same when space is short
CLEAN_ROWS_MAX = 5_000  # copied in one statement: about 50 ms
CLEAN_BYTES_MAX = 4 * 1024 * 1024  # copied in one statement
CLEAN_LOCK_TIMEOUT_MS = 2_000  # for locks on a partition that nobody reads any more
RETAIN_SESSION_IDLE_S_MAX = 15  # a stopped process that leads: the server ends its session
RETAINED_ROWS_MAX = 500  # pending deliveries that get their events' bytes in one statement
RETAINED_PARTITIONS_MAX = 200  # partitions of deliveries that outlive their events
STORAGE_FULL_RETRY_S = 2  # Retry-After of 507
STORAGE_STREAMS_MAX = 1_000  # in a report of storage, the largest first

# --- disk ---
DISK_IDLE_INTERVAL_S = 5.0  # and while this process stores nothing and there is room enough
DISK_CHECK_INTERVAL_S = 0.25  # how often the free space is looked at; a second of emits is 30 MB
DISK_SPARE_BYTES_MIN = 24 * 1024 * 1024  # below so much free space emits are refused ...
DISK_SPARE_BYTES_MAX = 256 * 1024 * 1024  # ... and on large disks below this
DISK_SPARE_SHARE = 0.02  # of the disk, between the two
# of what is free when the oldest segments go: with less, no job writes what it can do without
DISK_LOW_FACTOR = 2
# of the disk, or of the quota: so much is left to events whatever else fills the rest
DISK_FLOOR_SHARE = 0.125
WAL_BYTES_MIN = 48 * 1024 * 1024  # max_wal_size on the smallest disk
WAL_BYTES_MAX = 2 * 1024 * 1024 * 1024  # and on large ones; a checkpoint every few minutes
WAL_DISK_SHARE = 0.0625  # of the disk, between the two
WAL_SMALL_DISK_BYTES = 4 * 1024 * 1024 * 1024  # below it the WAL is in small files
BALLAST_BYTES_MIN = 16 * 1024 * 1024  # PostgreSQL recovers with one file of its log and a few pages
BALLAST_BYTES_MAX = 128 * 1024 * 1024  # on large disks
BALLAST_DISK_SHARE = 0.05  # of the disk, between the two
BALLAST_CHECK_INTERVAL_S = 5.0  # how often it is looked whether there is room for it again
DISK_FULL_RESTART_S = 1.0  # a part that ended on a full disk is started again after this

# --- tail and read ---
RING_EVENTS_MAX = 8_192  # per stream and process; a power of two, slots are found by masking
RING_BYTES_TOTAL_MAX = 32 * 1024 * 1024  # all rings of one process, shared equally; in memory
RING_IDLE_S = 10.0  # after its last reader has left: one that polls comes again
HEAD_POLL_INTERVAL_S = 0.25  # a lost NOTIFY costs at most this much latency
HEAD_IDLE_INTERVAL_S = 0.8  # while nobody reads a stream; less than AUTHORISATION_FRESH_S_MAX
HEAD_REST_INTERVAL_S = 10.0  # and while nobody asks for anything either ...
HEAD_USED_S = 10.0  # ... for so long
MARK_INTERVAL_S = 1.0  # how far the mark outside the database may be behind what was acknowledged
MARK_TIMEOUT_S_MAX = 1.0  # of Redis; the head of `system` is held while it is asked
READ_EVENTS_MAX = 512  # one read from the database
READ_BYTES_MAX = 4 * 1024 * 1024  # one read from the database
READ_SEGMENTS_MAX = 256  # one look at the segments; they may be small
READ_TIMEOUT_S_MAX = 5
LOOKUPS_PER_PROCESS_MAX = 2  # database connections for who-may-what alone
READERS_PER_PROCESS_MAX = 4  # database connections that serve catch-up reads in one process

# --- transient streams ---
TRANSIENT_EVENTS_DEFAULT = 1_000  # kept in Redis for those who come later, per stream
TRANSIENT_EVENTS_MAX = 100_000  # all of it stays in the memory of Redis
TRANSIENT_BYTES_DEFAULT = 8 * 1024 * 1024  # 1,000 events of 8 KiB
TRANSIENT_BYTES_MAX = 256 * 1024 * 1024  # a few such streams fit into a small machine
TRANSIENT_TIMEOUT_S_MAX = 3  # one call of Redis
TRANSIENT_PIPELINE_MAX = 64  # requests in one round trip; each is a script of some 50 µs
TRANSIENT_WAITING_MAX = 10_000  # requests in one process; beyond it emit answers 503 `overloaded`
# repeats are found as long as this after a producer's last event, and at least while it is held
TRANSIENT_PRODUCER_S = 24 * 3600

# --- sockets ---
SOCKETS_PER_PROCESS_MAX = 10_000
SOCKETS_PER_CLIENT_MAX = 1_000  # in one process
LISTENERS_PER_SOCKET_MAX = 64
MESSAGE_BYTES_MAX = 64 * 1024  # one message from a client; its largest is a listen with pairs
MESSAGES_PER_S_MAX = 200  # from one socket; beyond it the hub reads more slowly
WINDOW_EVENTS_MAX = 10_000  # unacknowledged events a listen may ask for
UNSENT_BYTES_MAX = 4 * 1024 * 1024  # two of the largest frames; pongs count too
SEND_PROGRESS_BYTES_MIN = 16 * 1024  # of a large frame, to count as taking something
SEND_STALL_S_MAX = 10.0  # a reader whose socket takes nothing for so long is told to resume
KEEPER_INTERVAL_S = 0.25  # how often all sockets of a process are looked after
KEEPER_IDLE_INTERVAL_S = 5.0  # and how often its counters are written while it has none
ABANDON_S = 2.0  # from a last frame to a slow reader until its connection is dropped
# a position is sent at least this often, so a filtered reader's cursor moves on
PING_INTERVAL_S = 15.0
SOCKET_WRITE_BYTES_MAX = 64 * 1024  # frames to one socket in one write
FRAMES_PER_SLICE_MAX = 64  # frames to one socket before others get their turn
UNSENT_TCP_TIMEOUT_MS = 30_000  # the kernel drops a connection whose peer takes nothing for so long
# of listens that begin or catch up: at a time in one process, in fair order between clients
CATCH_UP_SLICES = 2  # turns of the event loop before everything else goes on: about 1 ms
CATCH_UP_SLICE_S_MAX = 0.25  # a turn that is not taken by then is lost
CATCH_UP_OPENS = 2  # looks at where a stream stands; with the reads all of READERS_PER_PROCESS_MAX
CATCH_UP_READS = 2  # pages that are read
PAIRS_MAX = 64  # pairs of one listen
LISTEN_REGISTRATIONS_MAX = 1_000  # that one listen names; each of them costs a look at every change

# --- access ---
# a cached grant counts while the tail of `system` was confirmed within this
AUTHORISATION_FRESH_S_MAX = 1.0
# requests that need the same look-up share one that began no longer ago: with a look-up of 0.1 s a
# revocation is still effective within a second
LOOKUP_SHARED_S_MAX = 0.5
SECRET_KEY_CHARACTERS_MIN = 32  # of the key that signs logins and tokens: nobody guesses it
KEYS_CACHED_MAX = 50_000  # per process
KEYS_PER_CLIENT_MAX = 100
CLIENTS_PER_ZONE_MAX = 10_000
AUDIENCES_PER_CLIENT_MAX = 64  # groups of clients; each event with an audience meets them
GROUP_ZONES_CACHED_MAX = 1_000  # in one process; a zone has at most CLIENTS_PER_ZONE_MAX clients
GRANTS_PER_KEY_MAX = 100
CONNECTION_TOKEN_S_DEFAULT = 600
CONNECTION_TOKEN_S_MAX = 24 * 3600
TOKEN_BYTES_MAX = 4_096
CHANNELS_PER_ZONE_MAX = 63  # bits 0 to 62; bit 63 is `default`
CONNECTION_TOKEN_GRANTS_MAX = 10  # so that a token stays within TOKEN_BYTES_MAX and a URL
# an operator's login behind a token: nothing announces its end, so it is looked up again this often
LOGIN_CONFIRMED_MS_MAX = 1_000
LOGIN_BODY_BYTES_MAX = 4 * 1024  # a username, a password; of whoever shows no credential
# Hashing a password takes a core for some 0.3 s: so many at a time in one web process; others wait,
# addresses in turn, and do not hold a connection of the database.
LOGIN_HASHES_AT_ONCE = 1
LOGIN_HASHES_WAITING_MAX = 40  # each has a thread
LOGIN_HASHES_WAITING_PER_ADDRESS_MAX = 2  # a person has one; several stand behind a proxy
LOGIN_WINDOW_S = 60  # the time over which login attempts are counted
LOGIN_ATTEMPTS_PER_USER_MAX = 10  # in that window, from one address
LOGIN_ATTEMPTS_PER_ADDRESS_MAX = 30  # in that window, for all usernames

# --- management ---
PAGE_ITEMS_DEFAULT = 100
PAGE_ITEMS_MAX = 1_000
MANAGE_BODY_BYTES_MAX = 256 * 1024
JSON_VALUES_MAX = 50_000  # in one such body; more cost a web process tens of milliseconds
BACK_OFFICE_S_MAX = 5  # a statement of a page of the back office: it has no index for each question
BACK_OFFICE_ROWS_MAX = 10_000  # that a list counts and turns pages of

# --- registrations ---
REGISTRATIONS_PER_CLIENT_MAX = 1_000_000  # a matcher holds 100,000 in some 100 MB
REGISTRATIONS_PER_REQUEST_MAX = 1_000  # one barrier and one append: about 100 ms, heads held for 20
REGISTRATION_KEY_CHARS_MAX = 200  # a name for programs; each registration stores its own
GROUPS_PER_CLIENT_MAX = 10_000  # a matcher keeps the suspensions of each
BULK_LINE_BYTES_MAX = 128 * 1024  # a filter of 1,000 parts; a longer line is passed over
BULK_BATCH_BYTES_MAX = 2 * 1024 * 1024  # of lines that wait for one barrier
BULK_LINGER_S = 0.05  # lines are stored when so long no other one came, however few
BULK_IDLE_S_MAX = 60.0  # a request that sends nothing for so long has ended
BULK_THREADS = 2  # that store pieces in one process; each takes a connection of the database
STREAMS_PER_REGISTRATION_MAX = 64  # each has a place in its barriers, and a matcher that holds it
# that a manager may listen to, for a list of registrations to look at theirs alone
STREAMS_LOOKED_UP_MAX = 100
ENDPOINTS_PER_CLIENT_MAX = 10_000  # each is looked at by the drain when something is due to it
URL_CHARS_MAX = 2_048  # of an endpoint; what servers and proxies commonly take

# --- supervisor ---
RESTARTS_ROW_S = 10.0  # a part that was up for so long begins a new row of restarts
STOP_TIMEOUT_S_MAX = 10.0
SLOW_START_S = 60.0  # a part that is not ready by then is reported
READY_TIMEOUT_S_MAX = 120.0  # of throw-away servers, for tests and benchmarks
LEFTOVERS_END_S_MAX = 60.0  # for the parts of a killed hub to end, each after its own grace
READY_CHECK_S_MAX = 2  # one check of /readyz
GC_THRESHOLD = 10_000  # new objects between two collections of the youngest
GRACEFUL_S_MAX = 3  # a stopping web process waits so long for requests under way
KEEP_ALIVE_S = 75  # longer than clients' pools keep a connection, so that theirs close first
DESCRIPTORS_RESERVED = 256  # of a process: for the database, logs and files
CONNECTIONS_PER_PROCESS_MAX = 20_000

# --- forward ---
# until another forwarder takes over; with the look for free streams below 3 s in all
FORWARD_LEASE_S = 2.0
FORWARD_RENEW_INTERVAL_S = 0.6  # a third of the lease: two renewals may fail
FORWARD_HELD_S_MAX = 300.0  # a loop that is held for longer hangs: its leases run out
FORWARD_IDLE_INTERVAL_S = 5.0  # of a forwarder's signs of life, while no stream has callbacks
FORWARD_ACQUIRE_INTERVAL_S = 0.25  # between two looks for free streams, while there are some
FORWARD_ACQUIRE_STREAMS_MAX = 100  # in one look, so that forwarders that start together share
FORWARD_RELEASE_STREAMS_MAX = 50  # in one renewal, by one that holds more than its share
FORWARD_STREAMS_PER_PROCESS_MAX = 2_000  # a ring's slots take 64 KiB each
FORWARD_STREAMS_CHECK_S = (
    10.0  # for streams with callbacks; a change of registrations looks at once
)
FORWARD_WRITERS_PER_PROCESS_MAX = 4  # database connections; a statement takes some ms
DELIVERIES_PER_STATEMENT_MAX = 5_000  # about 40 ms and 2 MB of WAL
# that its deliveries name together; one endpoint may have a million that match every event
REGISTRATIONS_PER_STATEMENT_MAX = 20_000
# of one event; beyond it a row of `fanouts` spares the stream's next events the wait
FANOUT_ENDPOINTS_MIN = 10_000
FANOUT_CHECK_INTERVAL_S = 1.0  # for rows that another forwarder left behind
CHECKPOINT_INTERVAL_S = 1.0  # of a stream without matches: what is matched twice after a crash
# changes of registrations read at once: 2 MB of filters each, as they may come in bulk
FORWARD_BARRIERS_MAX = 32
FORWARD_LOAD_S_MAX = 120.0  # reading a stream's registrations; a million take about half of it
FORWARD_SLICE_S = 0.02  # of matching without a pause, so that leases are renewed in time
FORWARD_STOP_S_MAX = 1.5  # for the statements under way when the process is told to stop
FORWARD_STREAMS_LABELLED_MAX = 100  # streams with metrics of their own; the others share one label
DELIVERIES_RETAINED_DAYS = 30  # after the last segment of their group was sealed
ATTEMPTS_RETAINED_DAYS = 30  # a day is dropped whole
PARTITIONS_INTERVAL_S = 5.0  # how often partitions ahead of need are looked for ...
PARTITIONS_IDLE_INTERVAL_S = 20.0  # ... and while no stream has callbacks
DETACH_TIMEOUT_S_MAX = 30.0  # a reader's old snapshot ends it; it is finished the next time
PARTITION_ARCHIVE_S_MAX = (
    3_600.0  # archiving one partition that leaves; 10 GB of attempts take some minutes
)
PARTITION_ARCHIVE_PRESSED_S_MAX = 60.0  # the same when space is short: then it goes as it is
PARTITION_ARCHIVE_PING_S = 1.0  # how often the session that waits for it is heard

# --- listens on record ---
LISTENERS_RETAINED_DAYS = 30  # a day is dropped whole; the audit can prove nothing of what is older
LISTENERS_WRITE_INTERVAL_S = (
    1.0  # how often ends are written; a process that is killed leaves open rows
)
LISTENERS_PROGRESS_INTERVAL_S = 30.0  # how often it is written how far the others were told
LISTENERS_FINISH_S_MAX = 2.0  # for what is not yet written when the process is told to stop
LISTENERS_PER_STATEMENT_MAX = 500  # about 10 ms
LISTENER_PAUSE_S = 90.0  # between requests that follow one another and count as one listen
LISTENER_ROW_S_MAX = 86_400.0  # a longer listen begins a new row: a day's rows end by the next
LISTENER_FILTER_CHARS_STORED = 4_096  # what a longer one lets through cannot be judged later
# of one client in one process; of more it is only said that they were there: 30 MB an hour
LISTENERS_RECORDED_PER_CLIENT_HOUR = 100_000

# --- deliveries ---
DELIVERIES_SCANNED_MAX = 10_000  # rows that one page of all endpoints looks at; some 50 ms

# --- callbacks ---
CALLBACK_SLOTS_MAX = 576  # requests under way in one worker; a loop serves 10,000 a second with 256
# so many slots may a client hold for each that is free: alone two thirds of all, the next one two
# thirds of the rest; however many clients' endpoints hang together, some stay free for the others
CALLBACK_CLIENT_SLOTS_PER_FREE = 2
# requests kept longer than CALLBACK_SLOW_S that take no slot: one receiver that hangs holds up what
# else there is for 2 s, not until its requests time out; each costs a descriptor and some KiB
CALLBACK_HANGING_MAX = 1_152
CALLBACK_SLOTS_PER_ENDPOINT_MAX = 32  # so that no endpoint takes many of them
# all endpoints that are new or in trouble hold so many, and the healthy always have the rest: new
# ones that hang begin 64 requests in 2 s and keep each for 12 s
CALLBACK_SLOTS_UNPROVEN_MAX = 384
CALLBACK_SLOTS_NEW_MAX = 64  # of them for endpoints never tried, until they answer or are slow
CALLBACK_SLOTS_TROUBLE_MAX = 64  # of them for tries of endpoints that are known to be in trouble
CALLBACK_SLOTS_NEW_ENDPOINT_MAX = 4  # until the first good answer; then twice as many each time
CALLBACK_SLOW_S = 2.0  # an endpoint that keeps a request longer gets one slot until it answers
CALLBACK_ENDPOINTS_REMEMBERED_MAX = 20_000  # how they did lately, in one worker; about 10 MB
CALLBACK_TIMEOUT_S_MAX = 12.0  # one try, from the look-up of the name to the end of the answer
CALLBACK_CONNECT_TIMEOUT_S_MAX = 4.0  # of the time above: the name, TCP and TLS
CALLBACK_BODY_S_MAX = 2.0  # for the rest of an answer whose status is known
CALLBACK_HEADERS_BYTES_MAX = 16 * 1024  # of an answer
CALLBACK_HEADERS_COUNT_MAX = 100  # of an answer
CALLBACK_ANSWER_BYTES_READ_MAX = 16 * 1024  # of a longer body the rest is not taken
CALLBACK_ANSWER_CHARS_STORED_MAX = 1_024  # of an answer's headers, and of its body, in an attempt
CALLBACK_KEEP_ALIVE_S = 20.0  # shorter than servers usually keep an idle connection
CALLBACK_DNS_S_MAX = 10  # how long an address that was looked up is used again
# look-ups at a time: as many as unproven endpoints may hold, so that dead names delay nobody
CALLBACK_DNS_THREADS_MAX = 384
CALLBACK_CLAIM_S = 45.0  # three tries' time; what a dead worker held is due long before
CALLBACK_HEARTBEAT_S = 0.7  # how often a worker shows that it lives ...
CALLBACK_IDLE_HEARTBEAT_S = (
    1.4  # ... and while it holds no claim; less than half of CALLBACK_SILENT_S
)
# a worker that was not seen for so long is dead, and what it held is due; it posts nothing either
# unless it was seen itself: five of its beats, of which a busy database may swallow some
CALLBACK_SILENT_S = 4.0
# how often times are looked for that a clock's step left behind; a step that was seen looks at once
CALLBACK_REPAIR_INTERVAL_S = 30.0
CALLBACK_REPAIR_DELIVERIES_MAX = 1_000  # of one endpoint in one such look
CALLBACK_FAILURES_MIN = 5  # in a row; then the endpoint as a whole backs off ...
CALLBACK_BACKOFF_S_BASE = 1.0  # ... for half of this to all of it, then for twice as long ...
CALLBACK_BACKOFF_S_MAX = 60.0  # ... up to this: so late is it noticed that it answers again
CALLBACK_PROBE_S = 20.0  # the one request meanwhile: a try, and its result written
# so long tries do not count while an endpoint backs off, if all were of one delivery, which may be
# what the endpoint cannot take: about what its tries last
CALLBACK_SPARED_ALONE_S = 2 * 3_600.0
CALLBACK_SPARED_S = 3 * 24 * 3_600.0  # and if they were not: an outage over a weekend
CALLBACK_CLAIM_DELIVERIES_MAX = 256  # one claim; about 5 ms
CALLBACK_LANE_DELIVERIES_MAX = 32  # one claim of an ordered lane; posted one after the other
CALLBACK_SCAN_INTERVAL_S = 1.0  # due deliveries are looked for so often while some are pending ...
CALLBACK_REST_INTERVAL_S = 60.0  # ... and when none was pending for CALLBACK_REST_AFTER_S
CALLBACK_REST_AFTER_S = 10.0  # a burst that pauses is still looked for every second
CALLBACK_SCAN_ENDPOINTS_MAX = 500  # one look; 10 µs each, and the next look begins behind them
CALLBACK_SCAN_NEXT_S = 0.05  # after a look that did not reach the end
CALLBACK_FLUSH_INTERVAL_S = 0.02  # results wait at most so long for others
CALLBACK_FLUSH_RESULTS_MAX = 200  # results in one statement
CALLBACK_UNWRITTEN_MAX = 2_000  # results; beyond it nothing is claimed until they are written
CALLBACK_EVENT_BYTES_CACHED_MAX = 32 * 1024 * 1024  # events that are owed to many endpoints
CALLBACK_EVENT_CACHED_BYTES = 450  # of it, that each takes besides its body
CALLBACK_EVENT_CACHED_S_MAX = 30.0  # since its last use; longer than the first pauses of a retry
CALLBACK_NAMES_CACHED_MAX = 10_000  # segments' UUIDs with their streams' names; read secrets
CALLBACK_GATHER_S = 0.003  # slots that get free within it are filled by one claim
CALLBACK_STOP_S_MAX = 3.0  # a stopping worker waits so long for answers, then gives back the rest
CALLBACK_ATTEMPTS_MAX = 15  # about two hours in the mean; then the delivery is dead
CALLBACK_RETRY_S_BASE = 1.0  # the first pause is from 0 to this; each next bound is twice as long
CALLBACK_RETRY_S_MAX = 3_600.0  # also of what Retry-After asks for
CALLBACK_CANCEL_DELIVERIES_MAX = 1_000  # of a deleted endpoint in one statement
CALLBACK_WAKE_INTERVAL_S = 0.05  # workers are notified of new deliveries at most so often
# one unit of delivery work: then the next begins, so that a worker's tools see what it does
CALLBACK_UNIT_DELIVERIES_MAX = 10_000
CALLBACK_UNIT_S_MAX = 5.0  # the same; far below what a broker waits for an acknowledgement
CALLBACK_UNIT_START_S = 1.0  # from its message to its begin; else the worker runs it without one
CALLBACK_UNIT_RETRY_S_MAX = 2  # the longest pause before a unit that failed is tried again
CALLBACK_UNIT_SEND_S_MAX = 0.5  # of Redis for such a message
BROKER_POLL_S = 2  # a worker's question to Redis for tasks waits so long; so may its stop
QUEUE_BUSY_S = 10  # until a task that found no slot of its queue free in a worker comes again
WORKER_NAME_CHECK_S = 2.0  # so long a worker that starts waits for another one of its name
TASK_REQUEST_EXPIRY_S = 300  # a task that was asked for and not begun by then is the timetable's
TIMETABLE_REST_S = 300.0  # looks for what the log brings, while nothing is appended to it
CONSUMER_PAUSE_S_MAX = 5.0  # of a worker's tasks, while Redis is away or answers errors
CONSUMER_STEADY_S = 10.0  # it went well for so long: the next pause is short again
CALLBACK_LANE_IDLE_S = 3_600.0  # a lane that nobody holds is forgotten after this
CALLBACK_ARCHIVE_S_MAX = 2.0  # reading archived events for one claim; the rest is tried again
CALLBACK_HEADER_REGISTRATIONS_MAX = 100  # beyond it a CloudEvent says not which ones matched

# --- what waits for endpoints ---
# for one endpoint: three hours at 100 a second; some 300 MB of rows
BACKLOG_EVENTS_DEFAULT = 1_000_000
BACKLOG_BYTES_DEFAULT = 1024 * 1024 * 1024  # the same, with the events' stored bytes
BACKLOG_AGE_S_DEFAULT = 14 * 24 * 3_600  # an endpoint that nobody has mended for so long
BACKLOG_CLIENT_FACTOR = 4  # what may wait for all endpoints of a client: so many times as for one
# of the quota, or of the disk: one endpoint takes no more than a partition of events ...
BACKLOG_SHARE_ENDPOINT = 0.0625
BACKLOG_SHARE_CLIENT = 0.125  # ... one client no more than two ...
BACKLOG_SHARE_HUB = 0.25  # ... and all together leave three quarters to the rest
BACKLOG_SHARE_GOAL = 0.9  # of what may wait is left when more did: so dropping comes in bulks
BACKLOG_ROW_BYTES = 300  # of a delivery with its entries in indexes, besides the event's bytes
BACKLOG_CHECK_INTERVAL_S = 1.0  # how often it is counted ...
BACKLOG_CHECK_SHARE = 20.0  # ... with pauses of at least so many times what the counting took
BACKLOG_CHECK_INTERVAL_S_MAX = 60.0  # so long a bound may be passed
BACKLOG_ENDPOINTS_PER_STATEMENT_MAX = 20  # counted in one; a million rows take about a second
# an endpoint that loses deliveries is announced at once, and then so often at most
LOSSES_INTERVAL_S = 600.0
LOSSES_PER_CHECK_MAX = 100  # of endpoints, announced in one transaction; there is one each second

# --- overview ---
# counting so many takes some 20 ms; "or more" tells an operator enough
OVERVIEW_COUNT_MAX = 100_000
OVERVIEW_COUNT_MS_MAX = 1_000  # a count of deliveries that takes longer is left out
OVERVIEW_STREAMS_MAX = 200  # of a zone, by name; the list of streams has all

# --- health ---
HEALTH_CHECK_INTERVAL_S = 2.0  # how often a web process looks at the parts; a few ms each
HEALTH_REQUESTED_S = 20.0  # while nobody asked for so long, pauses are longer by ...
HEALTH_REST_S = 10.0  # ... less than a look stays true (HEALTH_STALE_S_MAX)
HEALTH_CHECK_MS_MAX = 1_000  # one statement of a look; what takes longer is unknown
HEALTH_STALE_S_MAX = 20.0  # a look that is older says nothing of now
HEALTH_HEARTBEAT_INTERVAL_S = 20.0  # how often the timetable writes its heartbeat
# a forwarder, worker or builder that was not heard for so long is gone; several missed heartbeats
HEALTH_SILENT_S_MAX = 15.0
HEALTH_TIMETABLE_S_MAX = 65.0  # the same of the timetable; three heartbeats
HEALTH_TASK_S_MAX = 1_200.0  # between two starts of a periodic task; four rests of the timetable
HEALTH_DUE_S_MAX = 60.0  # from due to claimed; of a worker that died it is CALLBACK_CLAIM_S
HEALTH_ENDPOINTS_MAX = 500  # endpoints, and lanes, that a look goes through; some 20 ms
HEALTH_ARCHIVE_S_MAX = 900.0  # from sealed to archived; a retry after a fault is within it
HEALTH_INDEX_S_MAX = 120.0  # from a request of a build to its begin, with no builder at work
ENDPOINT_HEALTH_INTERVAL_S = 10.0  # how often an unchanged outcome of an endpoint is written again

# --- matching ---
FILTER_CHARS_MAX = 16_384  # of its text; read in about 10 ms
TIME_SLICE_S = 0.005  # of long work on an event loop before others get their turn
# of the texts of stored filters that a process keeps compiled; some 20 bytes for each
COMPILED_CHARS_CACHED_MAX = 2 * 1024 * 1024
COMPILED_FILTER_CHARS = 200  # that one filter counts for besides its text
FILTER_CHARS_INLINE = 256  # of a listen's: read on the event loop, in about 1 ms; others aside
FILTER_DEPTH_MAX = 32  # forms within forms
FILTER_PARTS_MAX = 1_000  # nodes of its tree
FILTER_ALTERNATIVES_MAX = 64  # conjunctions that it comes to ...
FILTER_PRODUCT_MAX = 1_024  # ... of so many before those that say the same are left out
FILTER_STEPS_MAX = 30_000  # pairs of alternatives joined or compared for it: about 3 ms
# of an event's attributes and of filters: what JSON is read and written with exactly
INTEGER_MIN = -(1 << 63)
INTEGER_MAX = (1 << 64) - 1  # the greatest of 64 bits without a sign
ARITHMETIC_RESULTS_MAX = 100  # of one calculation with lists; of more nothing comes
# what the filters of one client may take of every event of one stream, and those of one socket:
# tests of about 2 us (lang/weight.py), so 10 ms; 1.2 s of an event made for it, less than a lease
FILTERS_TRIED_MAX = 5_000
FILTER_FOUND_FREE = 32  # such tests of a filter behind a value or range: few events come there
FILTER_TESTS_MAX = 4_096  # in all conjunctions together: 64 of 64, as many as pairs may be
CLOSURE_ALTERNATIVES_MAX = 256  # of what is wanted of a stream, as producers are told ...
CLOSURE_CHARS_MAX = 65_536  # ... and its text; wider, and less exact, where it would be more
CLOSURE_COMPARED_MAX = 200_000  # tests compared to leave out what others cover: about 1 s
CLOSURE_TESTS_MAX = 20_000  # of all these together: 14 MB, and 40 ms of a collection of garbage
CLOSURE_FILTERS_MAX = 5_000  # different ones that are looked at one by one; more are gathered ...
CLOSURE_GROUPS_MAX = 1_000  # ... in so many groups that are alike but for one value ...
CLOSURE_VALUES_MAX = 20_000  # ... with so many values; prefixes and ranges where there are more
CLOSURE_SCAN_MAX = 2_000_000  # registrations looked at for it, some 50 µs each, ...
CLOSURE_WORK_S = 0.002  # that a thread makes closures without a pause ...
CLOSURE_REST_S = 0.001  # ... and the pause: the event loop has the interpreter for itself
CLOSURE_CHUNK = 2_000  # ... so many at a time; of more than the most it is everything
CLOSURE_ADDED_MAX = 2_000  # registrations added to one of many; for more it is made anew
CLOSURE_WAIT_S = 5.0  # for a closure that is being made; until then it is everything
CLOSURE_REBUILD_S = 10.0  # between two makings of one of many, which takes out what has ended ...
CLOSURE_REBUILD_SHARE = 20.0  # ... and at least so many times what the last one took
CLOSURE_EXPENSIVE_S = 1.0  # to make one for an audience; then a pause by this share before the next
CLOSURE_WAITING_MAX = 16  # for audiences of one stream, made one by one; for more it is everything
CLOSURE_LISTENERS_MAX = 1_000  # different filters of listens; of more it is everything
CLOSURES_CACHED_MAX = 256  # that a process keeps current, of streams and audiences asked about
CLOSURE_BARRIERS_MAX = 10_000  # changes heard between two looks; of more every closure is made anew
INTERESTS_PER_SOCKET_MAX = 64  # that one websocket is told of
INTERESTS_PER_PROCESS_MAX = 500  # who wants to be told: each is a look at the database a second
INTEREST_PAUSE_S = 0.1  # between two answers to who wants to be told of changes ...
INTEREST_CHECK_S = 1.0  # ... and a look at listens, which nothing announces
LISTENER_INTEREST_S = 60.0  # a listen counts so long after it was last known to be there
LISTENER_INTEREST_RENEW_S = 5.0  # how often processes say which listens are there
INDEX_SHARD_ENTRIES_MAX = 16_000_000  # of a match index; its builder holds up to 600 bytes for each
# A build takes some 10 us of a core for each registration, and one that is due for each 20 of them
# that changed: at 1,000 changed versions a second a fifth of a core, however many registrations.
INDEX_DELTA_SHARE_MAX = 0.05  # of a match index that changed; beyond it it is due to be built anew
INDEX_DELTA_MIN = 1_000  # changes that are worth it
INDEX_REFUSED_MAX = 100_000  # versions that no index can hold; they are named in its manifest
INDEX_CHARS_CACHED_MAX = 12 * 1024 * 1024  # of filters that a builder parsed: some 50,000, 50 MB
SPARK_INDEX_MIN = 1_000_000  # filters to be parsed from which on Spark on two cores is sooner done
INDEX_CHECK_INTERVAL_S = 1.0  # how often a forwarder looks for newer indexes: one stat for a stream
INDEX_INLINE_SHARE = 0.25  # the same where matching waits for it: a constant work for each change
INDEX_AUTO_MIN = 50_000  # registrations from which on `auto` builds an index
TIER_TESTS_FIRST = 500  # evaluated, some 1 ms: then an index in memory is worth making ...
TIER_TESTS_EACH = 10  # ... with so many more for each registration in it, some 25 us
TIER_REGISTRATIONS_MAX = 1_024  # in one; making it takes some 25 ms, for which one event waits
INDEX_PATHS_CACHED_MAX = 10_000  # names of attributes, in one engine; events bring new ones
INDEX_PATH_CACHED_CHARS_MAX = 128  # of such a name; a longer one is looked up in each event
INDEX_BUILD_S_MAX = 2 * 3_600  # one build; 10,000,000 registrations take minutes of a free core
INDEX_IDLE_INTERVAL_S = 5.0  # and one that forwards no stream
INDEX_DUE_INTERVAL_S = 30.0  # how often a worker counts what has changed since an index was built
INDEX_BUILD_RETRY_S_BASE = 60.0  # after a build that failed; each next pause is twice as long
INDEX_BUILD_RETRY_S_MAX = 3_600.0  # what was mended is used within the hour
INDEX_BUILD_HEARTBEAT_S = 1.0  # how often a builder says how far it is
INDEX_BUILD_SILENT_S = 15.0  # a builder that was not heard for so long has gone, or is stopped
# after its end an ended version stays so long whatever else is so: whoever follows changes with a
# delay, and jobs of Spark with the snapshot that they are of
VERSIONS_RETAINED_S = 24 * 3_600.0
VERSIONS_PURGED_AT_ONCE = 5_000  # looked at in one transaction: some 100 ms
VERSIONS_PURGE_S_MAX = 60.0  # one run of the task; a million a run
INDEX_BUILD_NICENESS = 10  # those who match come first; it gets a tenth of what one of them gets
EXPLAIN_VALUES_MAX = 5  # of a list that a test saw; enough to see what it is
EXPLAIN_OBJECTS_MAX = 20  # of a list that an explanation looks into for the nearest
EXPLAIN_CHARS_MAX = 100  # of a text that a test saw; a filter may look at it a thousand times
REPORT_FIELDS_MAX = 64  # of a registration's report; read from each event that matches
REPORT_BYTES_MAX = 8 * 1024  # of it as JSON; each version of a registration stores its own
REPORTS_CACHED_MAX = 10_000  # different ones, read, in one process
PATH_CHARS_MAX = 1_024  # a pair's name; every event's objects are opened along such paths

# --- understanding ---
EXPLAIN_SLICE_S = 0.004  # of work in a web process before others get their turn
EXPLAIN_PER_PROCESS_MAX = 4  # dry runs and searches for matches at a time; each takes a core
EXPLAIN_PER_CLIENT_MAX = 2  # of them, in one process
MATCHES_SCANNED_MAX = 20_000  # registrations that one answer looks at; about 2 s ...
MATCHES_S_MAX = 2.0  # ... and for so long; `next` goes on
MATCHES_PAGE = 500  # registrations read at once; some 10 ms
MATCHES_SHOWN_MAX = 100  # registrations that matched, in one answer; their number has no bound
NEAREST_SHOWN_MAX = 10  # misses in one answer; a person reads no more
DRY_RUN_EVENTS_DEFAULT = 10_000  # the last ones; about a second
DRY_RUN_EVENTS_MAX = 1_000_000  # that one run looks at ...
DRY_RUN_S_MAX = 30.0  # ... and for so long; it says where it stopped
DRY_RUN_BUCKETS_MAX = 240  # counts over time; a plot has some 500 pixels
DRY_RUN_SAMPLES_DEFAULT = 3  # the first and the last that matched, so many of each
DRY_RUN_SAMPLES_MAX = 10  # the same; each may be large
DRY_RUN_PROGRESS_S = 0.25  # between two lines of progress

# --- client ---
CLIENT_PAUSE_S_MIN = 0.05  # before the first new try; then twice as long each time
CLIENT_PAUSE_S_MAX = 5.0  # a hub that comes back is found within it
CLIENT_ATTEMPTS_MAX = 3  # to begin what a person waits for; what has begun is never given up
CLIENT_POLL_S = 25  # one long poll; below the 30 s after which proxies commonly give up
CLIENT_SILENCE_S = 45.0  # three heartbeats of the hub; then the connection counts as dead
CLIENT_CONFIRM_S_MAX = 5.0  # for the answer whether a closure is current; then everything is sent
CLIENT_PAGE_EVENTS = 500  # one page of history; about a read of the hub's
OUTBOX_BYTES_MAX = 1024 * 1024 * 1024  # a queue's file; beyond it emit refuses, the disk stays free
OUTBOX_BATCH_EVENTS = 500  # released in one request; half of what the hub takes
OUTBOX_BATCH_BYTES = 4 * 1024 * 1024  # of one such request; half of what the hub takes
OUTBOX_INTERVAL_S = 1.0  # FOX's Δt: how often the timers of events under way are looked at
OUTBOX_TIMEOUT_S = 10.0  # FOX's T, twice what the hub may take: silence, then it is sent again
CURSOR_FILE_S = 0.1  # a command's cursor is written so often; a crash repeats what came since
PROGRAM_TIMEOUT_S = 60.0  # of a program that the command line runs for an event
FORWARD_LOCAL_TIMEOUT_S = 12.0  # of a receiver; as long as the hub's own callbacks wait
RELAY_BATCH_EVENTS = 100  # emitted in one request of a relay, of up to 1 MiB; as many more wait
RELAY_RETRY_S = 3_600.0  # a relay waits so long for a hub that is away, then ends with a status
CONSUMER_ATTEMPTS = 3  # of a program or receiver, before an event counts as failed
OUTBOX_HELD_S = 30.0  # after a refusal that an operator may end: a key, a grant, a stream

# --- listening ---
TIME_CHARS_MAX = 40  # a start given as a time; RFC 3339 with a fraction takes 35
LISTEN_FIRST_PAGE_EVENTS_MAX = 128  # the first read of a listen: its first event comes soon
LISTEN_PAGE_EVENTS_MAX = 1_024  # one read of a listen that catches up; two of them are held
LISTEN_PAGE_BYTES_MAX = 512 * 1024  # of stored bytes; the same page
# what all listens of a process hold of pages read; beyond it they read again what they did not send
LISTEN_PAGES_BYTES_TOTAL_MAX = 64 * 1024 * 1024
LISTEN_EVENTS_PER_SLICE_MAX = 512  # events that a listen looks at before others get their turn ...
LISTEN_TESTS_PER_SLICE_MAX = 8_192  # ... and tests of its filter for them: about 10 ms
POLL_TIMEOUT_S_MAX = 60  # a long poll; proxies commonly give up soon after
HISTORY_EVENTS_DEFAULT = 100  # a page of history in JSON
HISTORY_EVENTS_MAX = 1_000  # the same
HISTORY_BYTES_MAX = 1024 * 1024  # of stored bytes in a page of history; always one event
HISTORY_SCANNED_MAX = 20_000  # events that one page looks at; its cursor moves on
HISTORY_S_MAX = 3.0  # and for so long
QUERY_FIELDS_MAX = 32  # parameters of a URL; a listen has fifteen
QUERY_NAMES_MAX = 64  # channels in a URL
STREAM_WRITE_EVENTS_MAX = 256  # told over HTTP in one write
STREAM_WRITE_BYTES_MAX = 256 * 1024  # of stored bytes; the same write
SSE_RETRY_MS = 1_000  # an EventSource connects again after so long
STATE_COPY_KEYS_MAX = 2_000  # copied in one statement before their segment leaves; some 50 ms
STATE_PAGE_KEYS_MAX = 512  # one read of a stream's state
STATE_PAGE_BYTES_MAX = 512 * 1024  # of stored bytes; the same read
STATE_READS_MAX = 16  # for one page, past keys that are for others; at most 8 MB

# --- archive ---
ARCHIVE_ROW_GROUP_EVENTS_MAX = 4_096  # what is decoded for the sake of one event: some 5 ms
ARCHIVE_ROW_GROUP_BYTES_MAX = 16 * 1024 * 1024  # of stored bytes; bounds the memory of both sides
ARCHIVE_ATTRIBUTES_MAX = 256  # names with a column of their own in one file; the JSON text has all
ARCHIVE_NAMES_MAX = 10_000  # counted to find those; more distinct names are nobody's columns
ARCHIVE_SHAPES_MAX = 1_000  # sets of names and types told apart; a stream has a few
ARCHIVE_PRODUCERS_MAX = 10_000  # listed in a manifest; some 80 bytes each
ARCHIVE_STATEMENT_S_MAX = 30  # one page of rows; a disk at its limit still gives it
ARCHIVE_LEASE_S = 60.0  # until another archiver takes over; longer than syncing a large file
ARCHIVE_RENEW_INTERVAL_S = 5.0  # an archiver at work prolongs its lease so often
ARCHIVE_SEGMENTS_PER_SCAN_MAX = 100  # found at once; the list is looked at again after them
ARCHIVE_RETRY_S_BASE = 60.0  # after a failed try; each next pause is twice as long
ARCHIVE_RETRY_S_MAX = 3_600.0  # an archive that was mended is used within the hour
ARCHIVE_FAILURES_SHOWN_MAX = 100  # in one status; the oldest say what is wrong
ARCHIVE_FILES_OPEN_MAX = 16  # descriptors of one process; also readers of as many streams
ARCHIVE_CACHED_BYTES_MAX = 64 * 1024 * 1024  # row groups held in one process for those who read on
ARCHIVE_CHUNK_BYTES = 256 * 1024  # of a file that is sent or checked

# --- back-test ---
BACKTEST_SHOWN_DEFAULT = 100  # events of a result that are shown whole
BACKTEST_SHOWN_MAX = 1_000  # what a person looks through
BACKTEST_SHOWN_CHARS_MAX = 2_000  # of the attributes of one, as JSON; longer ones are left out
BACKTEST_BUCKETS_MAX = 300  # spans of the plot over time
BACKTEST_CSV_ROWS_MAX = 100_000  # what a spreadsheet opens; Parquet has all
BACKTEST_SKIPPED_SHOWN_MAX = 200  # segments listed in the result; Parquet has all
BACKTEST_TASKS_MAX = 2_000  # a segment each up to here; a task costs Spark some 10 ms

# --- inputs of jobs ---
# after a type was declared: by then the declaration is committed, and every process knows of it
AUDIT_DECLARED_S = 60.0
AUDIT_CLOCKS_S = 60.0  # what clocks of the hub's machines may differ by
EXPORT_STATEMENT_S_MAX = 3_600.0  # one table of a job's inputs; 20 M events take some minutes
SNAPSHOT_ALIVE_INTERVAL_S = 2.0  # the database ends a statement whose reader has died
EXPORT_PROGRESS_INTERVAL_S = 0.5  # how often an export says how far it is, and can be cancelled
EXPORT_MISSING_MAX = 1_000  # sequences named of one segment; their number is told in full
EXPORT_MANIFESTS_AT_ONCE = 16  # read from the archive, which may be far away

# --- jobs ---
JOB_LEASE_S = 15.0  # a run whose runner was not heard for so long has none, and the next may begin
JOB_HEARTBEAT_S = 1.0  # how often a runner says how far it is, and hears that it is to end
JOB_S_MAX = 12 * 3_600.0  # one run; half a day for what is done every day
JOB_STOP_S = 5.0  # Spark may end by itself when it is told to; then it is killed
JOB_STOPPED_S_MAX = 20.0  # a run that was told to end and has not: its process ends itself
JOB_RUNS_RETAINED = 100  # of each job with their results; three months of a daily one
# the files of one result: some five tables of an audit that are cut at AUDIT_ROWS_MAX; a larger one
# fails, and says how to ask for less
JOB_RESULT_BYTES_MAX = 2 * 1024 * 1024 * 1024
# all that are kept: the newest of each of the four jobs always fits
JOB_RESULTS_BYTES_MAX = 4 * JOB_RESULT_BYTES_MAX
JOB_RUNS_WAITING_MAX = 20  # of all jobs; each takes minutes
JOB_STREAMS_MAX = 1_000  # named for one run; of more it is the whole zone
JOB_LOG_BYTES_MAX = 8 * 1024 * 1024  # of a run; the older half goes
JOB_LOG_SHOWN_BYTES = 256 * 1024  # its end, as the API shows it
JOB_DETAIL_CHARS_MAX = 1_000  # why a run failed, in words
JOB_FILE_CHUNK_BYTES = 256 * 1024  # of a result's file that is sent
JOB_PARTITIONS_PER_CORE = 4  # of a shuffle on one machine; each then fits into memory for longer
JOB_JAVA_S_MAX = 15.0  # one `java -version`; a slow disk gives it in two, a busy machine in twelve
JOB_JAVA_ATTEMPTS = 4  # in one run: a minute
JOB_ATTEMPTS_MAX = 5  # of a run of the timetable, with the first: what lasts longer is for people
JOB_REPEAT_PAUSE_S = 300.0  # before its first repeat; what was restarted is there again
JOB_REPEAT_GROWTH = 3  # each next pause is so many times as long: 5, 15, 45, 135 minutes
JOB_REQUEST_RETRY_PAUSE_S = 120  # between two tries to ask for a run of the timetable, while ...
JOB_REQUEST_RETRIES_MAX = 25  # ... the database is away: within the hour
JOB_REPEAT_WITHIN_S = 6 * 3_600.0  # after it was asked for; later it would take the day's resources

# --- retention plans ---
PLAN_SHOWN_SEGMENTS_MAX = 500  # of a plan in its result; the CSV and Parquet files have all
PLAN_SHOWN_STREAMS_MAX = 200  # likewise; those that hold the most
PLAN_PLOT_STREAMS_MAX = 20  # bars of the report's plot; more are not read
PLAN_POLICIES_MAX = 1_000  # streams with a proposed policy in one plan
PLAN_APPLY_S_MAX = 20.0  # one request; the next one goes on
PLAN_OUTCOMES_SHOWN_MAX = 500  # in one answer; refused ones first

# --- audit ---
AUDIT_LATE_S = 60.0  # from append to delivered; an endpoint that is up is told within a second
AUDIT_SHOWN_MAX = 200  # findings, streams, clients in a result's details; its files have all
# of one table of a result: what a spreadsheet opens (1,048,576), some 130 MB as CSV
AUDIT_ROWS_MAX = 1_000_000
AUDIT_EVIDENCE_REGISTRATIONS_MAX = 20  # registrations that the evidence of one finding names
AUDIT_HOURS_MAX = 2_400  # of a result's plots: 100 days
AUDIT_TASKS_PER_CORE = 32  # that read segments: some 16 s of work each at 20,000,000 events

# --- migrations ---
MIGRATE_LOCK_MS_MAX = 100  # a table's lock is waited for, while others wait behind
MIGRATE_PAUSE_S = (0.1, 1.0)  # between two tries to get it
MIGRATE_S_MAX = 300.0  # of trying
