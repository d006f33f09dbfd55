-- Making streams, changing their policy, and looking at them, their segments and one event. The columns of a policy are
-- the fields of StreamPolicy, filled in by streams.py.

-- name: lock_system
-- `system` sorts first in every lock order, so its head is locked before a stream comes into being.
SELECT stream_id FROM heads WHERE stream_id = 1 FOR NO KEY UPDATE

-- name: count_streams
SELECT count(*) FROM streams WHERE zone_id = %s

-- name: insert_stream
-- The row, its first segment and its head (a transient stream has neither); nothing if the zone has the name.
WITH opened AS (
    INSERT INTO streams (zone_id, name, {policy}) VALUES (%(zone_id)s, %(name)s, {values})
    ON CONFLICT (zone_id, name) DO NOTHING
    RETURNING id, durability
), segment AS (
    INSERT INTO segments (uuid, stream_id, partition_id, first)
    SELECT gen_random_uuid(), id, (SELECT current_partition FROM log_state), 1 FROM opened WHERE durability <> 'transient'
    RETURNING id, uuid, stream_id, partition_id
), head AS (
    INSERT INTO heads (stream_id, segment_id, segment, partition_id, first, sequence, bytes)
    SELECT stream_id, id, uuid, partition_id, 1, 0, 0 FROM segment
)
SELECT id FROM opened

-- name: update_policy
-- All but the durability, which is for good.
UPDATE streams
   SET {changes}, unquenched_at = CASE WHEN quench THEN unquenched_at ELSE now() END
 WHERE id = %(id)s

-- name: find_stream
-- Of a zone, or the hub-wide `system`. The position of a transient stream is null here.
SELECT s.id, s.zone_id, s.name, {policy},
       (extract(epoch FROM s.created_at) * 1000000)::bigint AS created_at_us, s.boot_segment::text, s.boot_sequence,
       h.segment::text, h.first AS segment_first, h.sequence,
       COALESCE((SELECT min(g.first) FROM segments g WHERE g.stream_id = s.id AND g.tier <> 'dropped'), h.first) AS first
  FROM streams s LEFT JOIN heads h ON h.stream_id = s.id
 WHERE (s.zone_id = %s OR s.zone_id IS NULL) AND s.name = %s

-- name: list_streams
-- A page by name.
SELECT s.id, s.zone_id, s.name, {policy},
       (extract(epoch FROM s.created_at) * 1000000)::bigint AS created_at_us, s.boot_segment::text, s.boot_sequence,
       h.segment::text, h.first AS segment_first, h.sequence,
       COALESCE((SELECT min(g.first) FROM segments g WHERE g.stream_id = s.id AND g.tier <> 'dropped'), h.first) AS first
  FROM streams s LEFT JOIN heads h ON h.stream_id = s.id
 WHERE (s.zone_id = %s OR s.zone_id IS NULL) AND s.name > %s
 ORDER BY s.name
 LIMIT %s

-- name: list_segments
-- A page in the order of the stream, after the segment with that first sequence and id. What the open one holds, its head says.
SELECT s.id, s.uuid::text, s.first, COALESCE(s.last, h.sequence) AS last, s.last IS NULL AS open, s.tier,
       COALESCE(s.bytes, h.bytes) AS bytes, (extract(epoch FROM s.opened_at) * 1000000)::bigint AS opened_at_us,
       (extract(epoch FROM s.sealed_at) * 1000000)::bigint AS sealed_at_us, s.archive_path IS NOT NULL AS archived,
       (extract(epoch FROM s.removed_at) * 1000000)::bigint AS removed_at_us, s.removal_reason
  FROM segments s LEFT JOIN heads h ON h.segment_id = s.id AND h.stream_id = s.stream_id
 WHERE s.stream_id = %s AND (s.first, s.id) > (%s, %s)
 ORDER BY s.first, s.id
 LIMIT %s

-- name: policies
SELECT id, {policy} FROM streams WHERE id = ANY (%s::bigint[])

-- name: left_segments
SELECT stream_id, removal_reason, count(*) AS segments FROM segments
 WHERE stream_id = ANY (%s::bigint[]) AND removal_reason IS NOT NULL
 GROUP BY stream_id, removal_reason
 ORDER BY stream_id, removal_reason

-- name: archived
SELECT count(*) AS segments, COALESCE(sum(g.bytes), 0)::bigint AS bytes
  FROM segments g JOIN streams s ON s.id = g.stream_id
 WHERE g.archive_path IS NOT NULL AND s.zone_id = %s

-- name: current_segment
SELECT s.id, s.uuid::text, h.first, h.sequence AS last, true AS open, s.tier, h.bytes,
       (extract(epoch FROM s.opened_at) * 1000000)::bigint AS opened_at_us, NULL AS sealed_at_us, false AS archived,
       NULL AS removed_at_us, NULL AS removal_reason
  FROM heads h JOIN segments s ON s.id = h.segment_id
 WHERE h.stream_id = %s

-- name: segment_of_event
-- The last segment that begins at or before the sequence; an empty one may share its first with the next.
SELECT id, uuid::text, partition_id, tier, archive_path, first, last FROM segments
 WHERE stream_id = %s AND first <= %s
 ORDER BY first DESC, id DESC
 LIMIT 1

-- name: event_at
SELECT (extract(epoch FROM appended_at) * 1000000)::bigint AS appended_at_us, mask, payload
  FROM events WHERE partition_id = %s AND segment_id = %s AND sequence = %s
