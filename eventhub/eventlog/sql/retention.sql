-- Retention: what is sealed by its age, what is dropped and why, and the cleaning of partitions.

-- name: rolls_due
-- Streams whose open segment holds something and is older than the stream lets it be, or larger than a group should hold.
-- `retain_age_s` seals too: what nobody appends to would else never be dropped.
SELECT h.stream_id
  FROM heads h JOIN streams s ON s.id = h.stream_id JOIN segments g ON g.id = h.segment_id
 WHERE h.sequence >= h.first
   AND (g.opened_at <= to_timestamp(%(now_us)s / 1000000.0)
                       - make_interval(secs => least(s.segment_age_s_max, s.retain_age_s))
        OR h.bytes >= %(bytes_max)s)
 ORDER BY h.stream_id
 LIMIT %(streams_max)s

-- name: rolls_for_room
-- The streams whose open segments hold the most, when nothing that is sealed is left to drop.
SELECT h.stream_id
  FROM heads h JOIN streams s ON s.id = h.stream_id
 WHERE h.sequence >= h.first AND s.hold IS NULL AND NOT s.archive AND h.stream_id <> 1
 ORDER BY h.bytes DESC
 LIMIT %(streams_max)s

-- name: roll
SELECT count(*) FROM roll_segments(%s::bigint[], false)

-- name: drops_by_policy
-- Sealed segments that their streams' policies let go, the oldest first, with the reason: at least so many of the newest
-- events, or bytes, are kept, counted with the open segment; or what was sealed so long ago goes. Not what a hold
-- keeps, what is to be archived and is not yet, or what a durable cursor still needs (`needed`: the lowest of each stream).
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
                WHEN events_newer >= retain_events THEN 'count' END AS why
      FROM sealed
     WHERE (needed IS NULL OR last < needed) AND (archive_path IS NOT NULL OR NOT archived_first)
)
SELECT id, why FROM reasons WHERE why IS NOT NULL ORDER BY stream_id, first, id LIMIT %(segments_max)s

-- name: drops_for_room
-- The oldest sealed segments of the hub, until what they hold is enough. Only a hold stays, and what is to be archived and
-- is not yet; of `system` what is young, because every process follows it.
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
-- Before a segment leaves: what is the latest of its key is copied into the key's row, some keys at a time. Nothing is added to a sealed segment, so
-- it can be done before, on its own; rows are locked in the order in which appends lock them.
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
-- What keeps a sealed segment from being dropped now, whatever its stream's policy lets go; the empty text: nothing does. No
-- row: it is not there.
SELECT CASE WHEN g.tier <> 'live' THEN 'gone'
            WHEN g.last IS NULL THEN 'open'
            WHEN s.hold IS NOT NULL THEN 'hold'
            WHEN s.archive AND g.archive_path IS NULL THEN 'not_archived'
            WHEN s.on_lag = 'keep' AND g.last >= n.needed THEN 'needed'
            ELSE '' END AS why
  FROM segments g
  JOIN streams s ON s.id = g.stream_id
  LEFT JOIN unnest(%(streams)s::bigint[], %(needed)s::bigint[]) AS n (stream_id, needed) ON n.stream_id = s.id
 WHERE g.id = %(segment_id)s AND g.uuid = %(segment)s::uuid

-- name: still_live
SELECT id FROM segments WHERE id = ANY (%s) AND tier = 'live'

-- name: to_be_cleaned
-- Whether a segment is still read from a group that is not written to any more.
SELECT FROM segments
 WHERE id = %(segment_id)s AND uuid = %(segment)s::uuid AND tier = 'live' AND partition_id = %(partition_id)s
   AND partition_id < (SELECT current_partition FROM log_state)

-- name: drop
-- Readers lose them now, or go to the archive for them; the partitions go later. What came of it, by stream and reason.
WITH gone AS (
    UPDATE segments g
       SET tier = CASE WHEN g.archive_path IS NULL THEN 'dropped' ELSE 'archived' END,
           removed_at = to_timestamp(%(now_us)s / 1000000.0), removal_reason = v.why
      FROM unnest(%(segments)s::bigint[], %(whys)s::text[]) AS v (id, why)
     WHERE g.id = v.id AND g.tier = 'live' AND g.last IS NOT NULL
       AND EXISTS (SELECT FROM streams s WHERE s.id = g.stream_id AND s.hold IS NULL)
    RETURNING g.stream_id, g.tier, g.first, g.last, g.bytes, v.why
)
SELECT n.stream_id, s.zone_id, s.name AS stream, n.tier, n.why, n.segments, n.events, n.bytes
  FROM (SELECT stream_id, tier, why, count(*) AS segments, sum(last - first + 1)::bigint AS events, sum(bytes)::bigint AS bytes
          FROM gone GROUP BY stream_id, tier, why) AS n
  JOIN streams s ON s.id = n.stream_id
 ORDER BY n.stream_id, n.why

-- name: first_readable
-- The first sequence of each stream that can still be read; of an empty one the next to come.
SELECT v.stream_id, r.first
  FROM unnest(%s::bigint[]) AS v (stream_id),
       LATERAL (SELECT g.first FROM segments g
                 WHERE g.stream_id = v.stream_id AND g.tier <> 'dropped' AND (g.last IS NULL OR g.last >= g.first)
                 ORDER BY g.first, g.id LIMIT 1) AS r

-- name: storage_use
-- What the hub's data takes on the disk, indexes and all, by what it is: events; deliveries, partitioned like them; the keyed
-- state; the tokens. Dropping events gives back the first two alone.
SELECT COALESCE(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname ~ '^events_p[0-9]+$'), 0)::bigint AS events,
       COALESCE(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname ~ '_p[0-9]+$' AND c.relname !~ '^events_p'), 0)::bigint AS deliveries,
       COALESCE(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname = 'keyed_state'), 0)::bigint AS keyed_state,
       COALESCE(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname ~ '^idempotency_digests_[0-9]$'), 0)::bigint AS tokens
  FROM pg_class c
 WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'events'::regclass)

-- name: quota
SELECT quota_bytes FROM log_state

-- name: partitions
-- Each group whose partition is there, attached or not: what it takes on the disk with all that is partitioned like it,
-- how many of the stored bytes that were written to it are still live, and are read from it.
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
       COALESCE(g.unempty, 0)::bigint AS unempty
  FROM tables t
  JOIN sizes z USING (id)
  LEFT JOIN pg_inherits i ON i.inhrelid = t.oid
  LEFT JOIN LATERAL (
        SELECT sum(COALESCE(s.bytes, h.bytes)) FILTER (WHERE s.tier = 'live') AS live,
               COALESCE(sum(COALESCE(s.bytes, h.bytes)), 0) + (SELECT moved_bytes FROM event_partitions WHERE id = t.id) AS stored,
               count(*) FILTER (WHERE s.tier = 'live' AND (s.last IS NULL OR s.last >= s.first)) AS unempty
          FROM segments s LEFT JOIN heads h ON h.segment_id = s.id AND s.last IS NULL
         WHERE s.partition_id = t.id) AS g ON true
 WHERE t.relname = 'events_p' || t.id
 ORDER BY t.id

-- name: horizon
-- The current group, the first transaction that is not over, and the one that will begin next.
SELECT current_partition AS current, pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest,
       pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next
  FROM log_state

-- name: open_in_partition
SELECT stream_id FROM heads WHERE partition_id = %s AND sequence >= first ORDER BY stream_id

-- name: move_empty
-- Open segments that hold nothing: under their heads' locks, in order, to the current group.
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
-- Sealed segments without events need no partition at all.
UPDATE segments SET partition_id = (SELECT current_partition FROM log_state)
 WHERE partition_id = %s AND last < first

-- name: live_in_partition
-- Sealed segments to be copied, with about so many rows as a step may copy.
SELECT id, last, greatest(1, least(%(rows_max)s, %(bytes_max)s * (last - first + 1) / greatest(bytes, 1)))::bigint AS rows_max
  FROM segments
 WHERE partition_id = %(partition_id)s AND tier = 'live' AND last >= first
 ORDER BY id

-- name: copied_to
SELECT COALESCE(max(sequence), 0) FROM events WHERE partition_id = %s AND segment_id = %s

-- name: copy
-- The next rows of a segment into another group. What a run before this one copied is there already.
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
-- From now on readers look for the segment there.
WITH moved AS (
    UPDATE segments SET partition_id = %(to)s WHERE id = %(segment_id)s AND partition_id = %(partition_id)s AND tier = 'live'
    RETURNING bytes
)
UPDATE event_partitions g SET moved_bytes = g.moved_bytes + m.bytes FROM moved m WHERE g.id = %(partition_id)s

-- name: left_in_partition
-- What must be out of a group before its partition goes.
SELECT (SELECT count(*) FROM segments WHERE partition_id = %(partition_id)s AND tier = 'live')
     + (SELECT count(*) FROM heads WHERE partition_id = %(partition_id)s)

-- name: is_exported
-- Whether the export of a job holds a partition. To detach it now would wait for that until its timeout; and a detachment
-- that was interrupted is finished only when every older snapshot is over, which is the end of the whole export.
SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                WHERE l.locktype = 'relation' AND l.relation = to_regclass(%s)
                  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                  AND a.application_name = 'eventhub export')

-- name: disk_was_full
-- True once for each time without space: of all who saw it, one announces it.
UPDATE log_state SET disk_full_until = to_timestamp(%(until_us)s / 1000000.0)
 WHERE disk_full_until IS NULL OR disk_full_until < to_timestamp(%(since_us)s / 1000000.0)
RETURNING true

-- name: delete_empty_partitions
-- Numbers of groups that nothing is partitioned by any more.
DELETE FROM event_partitions g
 WHERE g.id < (SELECT current_partition FROM log_state)
   AND NOT EXISTS (SELECT FROM pg_class c WHERE c.relkind = 'r' AND c.relname ~ ('_p' || g.id || '$'))

-- name: set_quota
UPDATE log_state SET quota_bytes = %s

-- name: storage
-- What a zone's streams (null: all of the hub) hold, the largest first; stored bytes, without indexes.
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
