-- Retention: sealing by age, drops by policy and for space, and the cleaning of partitions.

-- name: rolls_due
-- Streams whose open segment is not empty and is older than the policy allows, or too large for a partition. `retain_age_s` seals
-- too: otherwise the last events of a quiet stream would never be dropped.
SELECT h.stream_id
  FROM heads h JOIN streams s ON s.id = h.stream_id JOIN segments g ON g.id = h.segment_id
 WHERE h.sequence >= h.first
   AND (g.opened_at <= to_timestamp(%(now_us)s / 1000000.0)
                       - make_interval(secs => least(s.segment_age_s_max, s.retain_age_s))
        OR h.bytes >= %(bytes_max)s)
 ORDER BY h.stream_id
 LIMIT %(streams_max)s

-- name: rolls_for_space
-- The streams with the largest open segments, used if no sealed segment can be dropped.
SELECT h.stream_id
  FROM heads h JOIN streams s ON s.id = h.stream_id
 WHERE h.sequence >= h.first AND s.hold IS NULL AND NOT s.archive AND h.stream_id <> 1
 ORDER BY h.bytes DESC
 LIMIT %(streams_max)s

-- name: roll
SELECT count(*) FROM roll_segments(%s::bigint[], false)

-- name: drops_by_policy
-- Sealed segments that their streams' policies do not retain, the oldest first, with the reason: the newer segments, with the open
-- one, have at least so many events or bytes, or the segment was sealed so long ago. Excluded are segments under a hold, those to
-- be archived, and those that a durable cursor still needs (`needed`: the lowest sequence of each stream).
WITH limited AS (
    SELECT s.id AS stream_id, s.retain_events, s.retain_bytes, s.retain_age_s, s.archive AS archived_first,
           h.sequence - h.first + 1 AS open_events, h.bytes AS open_bytes,
           CASE WHEN s.on_lag = 'keep' THEN n.needed END AS needed
      FROM streams s
      JOIN heads h ON h.stream_id = s.id
      LEFT JOIN unnest(%(streams)s::bigint[], %(needed)s::bigint[]) AS n (stream_id, needed) ON n.stream_id = s.id
     WHERE s.hold IS NULL AND num_nonnulls(s.retain_events, s.retain_bytes, s.retain_age_s) > 0
), sealed AS (
    SELECT g.id, g.stream_id, g.first, g.last, g.sealed_at, g.archive_path, l.retain_events, l.retain_bytes, l.retain_age_s,
           l.archived_first, l.needed,
           l.open_events + COALESCE(sum(g.last - g.first + 1) OVER newer, 0) AS events_newer,
           l.open_bytes + COALESCE(sum(g.bytes) OVER newer, 0) AS bytes_newer
      FROM limited l JOIN segments g ON g.stream_id = l.stream_id AND g.tier = 'live' AND g.last IS NOT NULL
    WINDOW newer AS (PARTITION BY g.stream_id ORDER BY g.first DESC, g.id DESC
                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), reasons AS (
    SELECT id, stream_id, first,
           CASE WHEN sealed_at <= to_timestamp(%(now_us)s / 1000000.0) - make_interval(secs => retain_age_s) THEN 'age'
                WHEN bytes_newer >= retain_bytes THEN 'size'
                WHEN events_newer >= retain_events THEN 'count' END AS reason
      FROM sealed
     WHERE (needed IS NULL OR last < needed) AND (archive_path IS NOT NULL OR NOT archived_first)
)
SELECT id, reason FROM reasons WHERE reason IS NOT NULL ORDER BY stream_id, first, id LIMIT %(segments_max)s

-- name: drops_for_space
-- The oldest sealed segments of the hub, until their bytes are enough. Excluded are segments under a hold, those to be archived,
-- and young ones of `system`, because every process follows it.
SELECT id FROM (
    SELECT g.id, g.sealed_at, sum(g.bytes) OVER (ORDER BY g.sealed_at, g.id) - g.bytes AS bytes_before
      FROM segments g JOIN streams s ON s.id = g.stream_id
     WHERE g.tier = 'live' AND g.last IS NOT NULL AND s.hold IS NULL AND (g.archive_path IS NOT NULL OR NOT s.archive)
       AND (g.stream_id <> 1 OR g.sealed_at <= to_timestamp(%(now_us)s / 1000000.0) - make_interval(secs => %(system_s)s))
) AS oldest
 WHERE bytes_before < %(bytes)s
 ORDER BY sealed_at, id
 LIMIT %(segments_max)s

-- name: keep_state
-- Before a segment is dropped, its events that are the latest of their keys are copied to the keys' rows, some at a time. This can
-- be done in advance, because nothing is added to a sealed segment. Rows are locked in the same order as by appends.
WITH leaving AS (
    SELECT g.id, g.uuid, g.stream_id, g.partition_id
      FROM segments g JOIN streams s ON s.id = g.stream_id AND s.keyed
     WHERE g.id = %(segment)s AND g.tier = 'live' AND g.last IS NOT NULL
), locked AS MATERIALIZED (
    SELECT k.stream_id, k.digest, k.sequence, l.id AS segment_id, l.partition_id
      FROM keyed_state k JOIN leaving l ON l.stream_id = k.stream_id AND l.uuid = k.segment
     WHERE k.payload IS NULL
     ORDER BY k.stream_id, k.digest
     LIMIT %(keys_max)s
       FOR NO KEY UPDATE OF k
)
UPDATE keyed_state k SET mask = e.mask, appended_at = e.appended_at, payload = e.payload
  FROM locked l JOIN events e ON e.partition_id = l.partition_id AND e.segment_id = l.segment_id AND e.sequence = l.sequence
 WHERE k.stream_id = l.stream_id AND k.digest = l.digest

-- name: retained_by
-- What retains a sealed segment now, regardless of its stream's policy; '' if nothing does. No row: there is no such segment.
SELECT CASE WHEN g.tier <> 'live' THEN 'gone'
            WHEN g.last IS NULL THEN 'open'
            WHEN s.hold IS NOT NULL THEN 'hold'
            WHEN s.archive AND g.archive_path IS NULL THEN 'not_archived'
            WHEN s.on_lag = 'keep' AND g.last >= n.needed THEN 'needed'
            ELSE '' END AS reason
  FROM segments g
  JOIN streams s ON s.id = g.stream_id
  LEFT JOIN unnest(%(streams)s::bigint[], %(needed)s::bigint[]) AS n (stream_id, needed) ON n.stream_id = s.id
 WHERE g.id = %(segment_id)s AND g.uuid = %(segment)s::uuid

-- name: still_live
SELECT id FROM segments WHERE id = ANY (%s) AND tier = 'live'

-- name: to_be_cleaned
-- Whether a live segment is still in a partition that is no longer written to.
SELECT FROM segments
 WHERE id = %(segment_id)s AND uuid = %(segment)s::uuid AND tier = 'live' AND partition_id = %(partition_id)s
   AND partition_id < (SELECT current_partition FROM log_state)

-- name: drop
-- Mark segments as dropped, or as archived if they are in the archive; partitions are cleaned later. Returns totals by stream and
-- reason.
WITH removed AS (
    UPDATE segments g
       SET tier = CASE WHEN g.archive_path IS NULL THEN 'dropped' ELSE 'archived' END,
           removed_at = to_timestamp(%(now_us)s / 1000000.0), removal_reason = v.reason
      FROM unnest(%(segments)s::bigint[], %(reasons)s::text[]) AS v (id, reason)
     WHERE g.id = v.id AND g.tier = 'live' AND g.last IS NOT NULL
       AND EXISTS (SELECT FROM streams s WHERE s.id = g.stream_id AND s.hold IS NULL)
    RETURNING g.stream_id, g.tier, g.first, g.last, g.bytes, v.reason
)
SELECT n.stream_id, s.zone_id, s.name AS stream, n.tier, n.reason, n.segments, n.events, n.bytes
  FROM (SELECT stream_id, tier, reason, count(*) AS segments, sum(last - first + 1)::bigint AS events, sum(bytes)::bigint AS bytes
          FROM removed GROUP BY stream_id, tier, reason) AS n
  JOIN streams s ON s.id = n.stream_id
 ORDER BY n.stream_id, n.reason

-- name: first_readable
-- The first readable sequence of each stream; the next one if the stream is empty.
SELECT v.stream_id, r.first
  FROM unnest(%s::bigint[]) AS v (stream_id),
       LATERAL (SELECT g.first FROM segments g
                 WHERE g.stream_id = v.stream_id AND g.tier <> 'dropped' AND (g.last IS NULL OR g.last >= g.first)
                 ORDER BY g.first, g.id LIMIT 1) AS r

-- name: storage_use
-- The bytes of the hub's data on the disk, with all indexes: events; deliveries, which are partitioned like them; keyed state;
-- idempotency tokens. Dropping events frees only the first two.
SELECT COALESCE(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname ~ '^events_p[0-9]+$'), 0)::bigint AS events,
       COALESCE(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname ~ '_p[0-9]+$' AND c.relname !~ '^events_p'), 0)::bigint AS deliveries,
       COALESCE(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname = 'keyed_state'), 0)::bigint AS keyed_state,
       COALESCE(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname ~ '^idempotency_digests_[0-9]$'), 0)::bigint AS tokens
  FROM pg_class c
 WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'events'::regclass)

-- name: quota
SELECT quota_bytes FROM log_state

-- name: partitions
-- Each partition that exists, attached or not: its bytes on the disk with the tables that are partitioned alike, and its stored
-- bytes, live and in all.
WITH tables AS MATERIALIZED (
    SELECT c.oid, c.relname, substring(c.relname FROM '_p([0-9]+)$')::integer AS id
      FROM pg_class c
     WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'events'::regclass)
       AND c.relname ~ '_p[0-9]+$'
), sizes AS MATERIALIZED (
    SELECT id, sum(pg_total_relation_size(oid))::bigint AS size FROM tables GROUP BY id
)
SELECT t.id, i.inhrelid IS NOT NULL AS attached, COALESCE(i.inhdetachpending, false) AS pending,
       COALESCE(z.size, 0) AS size, COALESCE(g.live, 0)::bigint AS live, COALESCE(g.stored, 0)::bigint AS stored,
       COALESCE(g.nonempty, 0)::bigint AS nonempty
  FROM tables t
  JOIN sizes z USING (id)
  LEFT JOIN pg_inherits i ON i.inhrelid = t.oid
  LEFT JOIN LATERAL (
        SELECT sum(COALESCE(s.bytes, h.bytes)) FILTER (WHERE s.tier = 'live') AS live,
               COALESCE(sum(COALESCE(s.bytes, h.bytes)), 0) + (SELECT moved_bytes FROM event_partitions WHERE id = t.id) AS stored,
               count(*) FILTER (WHERE s.tier = 'live' AND (s.last IS NULL OR s.last >= s.first)) AS nonempty
          FROM segments s LEFT JOIN heads h ON h.segment_id = s.id AND s.last IS NULL
         WHERE s.partition_id = t.id) AS g ON true
 WHERE t.relname = 'events_p' || t.id
 ORDER BY t.id

-- name: horizon
-- The current partition, the oldest running transaction, and the next one.
SELECT current_partition AS current, pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest,
       pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next
  FROM log_state

-- name: open_in_partition
SELECT stream_id FROM heads WHERE partition_id = %s AND sequence >= first ORDER BY stream_id

-- name: move_empty
-- Move empty open segments to the current partition, under their heads' locks, in order.
WITH locked AS MATERIALIZED (
    SELECT stream_id, segment_id FROM heads WHERE partition_id = %(partition_id)s AND sequence < first
     ORDER BY stream_id FOR NO KEY UPDATE
), moved AS (
    UPDATE segments s SET partition_id = l.current_partition
      FROM locked k, log_state l WHERE s.id = k.segment_id
)
UPDATE heads h SET partition_id = l.current_partition
  FROM locked k, log_state l WHERE h.stream_id = k.stream_id

-- name: move_sealed_empty
-- Sealed segments without events need no partition.
UPDATE segments SET partition_id = (SELECT current_partition FROM log_state)
 WHERE partition_id = %s AND last < first

-- name: live_in_partition
-- Sealed segments to be copied, each with the approximate number of rows that a step may copy.
SELECT id, last, greatest(1, least(%(rows_max)s, %(bytes_max)s * (last - first + 1) / greatest(bytes, 1)))::bigint AS rows_max
  FROM segments
 WHERE partition_id = %(partition_id)s AND tier = 'live' AND last >= first
 ORDER BY id

-- name: copied_to
SELECT COALESCE(max(sequence), 0) FROM events WHERE partition_id = %s AND segment_id = %s

-- name: copy
-- Copy the next rows of a segment to another partition. Rows that an interrupted run has copied are skipped.
WITH page AS MATERIALIZED (
    SELECT segment_id, sequence, mask, appended_at, payload FROM events
     WHERE partition_id = %(partition_id)s AND segment_id = %(segment_id)s AND sequence > %(after)s
     ORDER BY sequence LIMIT %(rows_max)s
), copied AS (
    INSERT INTO events (segment_id, sequence, mask, appended_at, partition_id, payload)
    SELECT segment_id, sequence, mask, appended_at, %(to)s, payload FROM page
        ON CONFLICT DO NOTHING
)
SELECT max(sequence) AS last, sum(octet_length(payload))::bigint AS bytes FROM page

-- name: moved
-- From now on readers find the segment in its new partition.
WITH moved AS (
    UPDATE segments SET partition_id = %(to)s WHERE id = %(segment_id)s AND partition_id = %(partition_id)s AND tier = 'live'
    RETURNING bytes
)
UPDATE event_partitions g SET moved_bytes = g.moved_bytes + m.bytes FROM moved m WHERE g.id = %(partition_id)s

-- name: left_in_partition
-- The segments and heads that must be moved before the partition is dropped.
SELECT (SELECT count(*) FROM segments WHERE partition_id = %(partition_id)s AND tier = 'live')
     + (SELECT count(*) FROM heads WHERE partition_id = %(partition_id)s)

-- name: is_exported
-- Whether the export of a job holds a partition. Detaching it now would wait until the timeout, and an interrupted detachment can
-- be finalized only when all older snapshots have ended, which is the end of the whole export.
SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                WHERE l.locktype = 'relation' AND l.relation = to_regclass(%s)
                  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                  AND a.application_name = 'eventhub export')

-- name: disk_was_full
-- True once for each episode: one of the processes that noticed it announces it.
UPDATE log_state SET disk_full_until = to_timestamp(%(until_us)s / 1000000.0)
 WHERE disk_full_until IS NULL OR disk_full_until < to_timestamp(%(since_us)s / 1000000.0)
RETURNING true

-- name: delete_empty_partitions
-- Rows of partitions that no table has any more.
DELETE FROM event_partitions g
 WHERE g.id < (SELECT current_partition FROM log_state)
   AND NOT EXISTS (SELECT FROM pg_class c WHERE c.relkind = 'r' AND c.relname ~ ('_p' || g.id || '$'))

-- name: set_quota
UPDATE log_state SET quota_bytes = %s

-- name: storage
-- The storage of a zone's streams (null: of all streams), the largest first; stored bytes, without indexes.
SELECT s.name, z.stream_id AS id, COALESCE(z.bytes, 0)::bigint AS bytes, z.live, z.archived, z.dropped,
       COALESCE(z.first, h.sequence + 1) AS first, h.sequence AS last
  FROM (SELECT g.stream_id, sum(COALESCE(g.bytes, h.bytes)) FILTER (WHERE g.tier = 'live') AS bytes,
               count(*) FILTER (WHERE g.tier = 'live') AS live, count(*) FILTER (WHERE g.tier = 'archived') AS archived,
               count(*) FILTER (WHERE g.tier = 'dropped') AS dropped,
               min(g.first) FILTER (WHERE g.tier <> 'dropped' AND (g.last IS NULL OR g.last >= g.first)) AS first
          FROM segments g LEFT JOIN heads h ON h.segment_id = g.id AND g.last IS NULL
         GROUP BY g.stream_id) AS z
  JOIN streams s ON s.id = z.stream_id
  JOIN heads h ON h.stream_id = z.stream_id
 WHERE %(zone)s::bigint IS NULL OR s.zone_id = %(zone)s
 ORDER BY z.bytes DESC NULLS LAST, z.stream_id
 LIMIT %(streams_max)s

-- name: counts
SELECT (SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass)
