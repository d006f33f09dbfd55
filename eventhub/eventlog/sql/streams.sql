-- Create streams, change their policy, and read them, their segments and single events. The columns of a policy are the fields
-- of StreamPolicy, filled in by streams.py.

-- name: lock_system
-- `system` comes first in every lock order, so its head is locked before a stream is created.
SELECT stream_id FROM heads WHERE stream_id = 1 FOR NO KEY UPDATE

-- name: count_streams
SELECT count(*) FROM streams WHERE zone_id = %s AND deleted_at IS NULL

-- name: insert_stream
-- The row, its first segment and its head (a transient stream has neither). No row if the zone has the name.
WITH opened AS (
    INSERT INTO streams (zone_id, name, {policy}) VALUES (%(zone_id)s, %(name)s, {values})
    ON CONFLICT (zone_id, name) WHERE deleted_at IS NULL DO NOTHING
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
-- Everything but the durability, which is never changed.
UPDATE streams
   SET {changes}, unquenched_at = CASE WHEN quench THEN unquenched_at ELSE now() END
 WHERE id = %(id)s

-- name: streams
-- The streams of a zone and the hub-wide `system`: a page by name, or the one of a name. The position of a transient stream is
-- null.
SELECT s.id, s.zone_id, s.name, {policy},
       (extract(epoch FROM s.created_at) * 1000000)::bigint AS created_at_us, s.boot_segment::text, s.boot_sequence,
       (extract(epoch FROM least(s.deletes_at, z.deletes_at)) * 1000000)::bigint AS deletes_at_us,
       h.segment::text, h.first AS segment_first, h.sequence,
       COALESCE((SELECT min(g.first) FROM segments g WHERE g.stream_id = s.id AND g.tier <> 'dropped'), h.first) AS first
  FROM streams s LEFT JOIN heads h ON h.stream_id = s.id LEFT JOIN zones z ON z.id = s.zone_id
 WHERE (s.zone_id = %(zone_id)s OR s.zone_id IS NULL) AND s.deleted_at IS NULL
   AND (%(name)s::text IS NULL OR s.name = %(name)s) AND s.name > %(after)s
 ORDER BY s.name
 LIMIT %(count)s

-- name: policies
SELECT id, {policy} FROM streams WHERE id = ANY (%s::bigint[])

-- name: removed_segments
SELECT stream_id, removal_reason, count(*) AS segments FROM segments
 WHERE stream_id = ANY (%s::bigint[]) AND removal_reason IS NOT NULL
 GROUP BY stream_id, removal_reason
 ORDER BY stream_id, removal_reason

-- name: segment_of_event
-- The last segment that begins at or before the sequence; an empty segment may share its first sequence with the next.
SELECT id, uuid::text, partition_id, tier, archive_path, first, last FROM segments
 WHERE stream_id = %s AND first <= %s
 ORDER BY first DESC, id DESC
 LIMIT 1

-- name: event_at
SELECT (extract(epoch FROM appended_at) * 1000000)::bigint AS appended_at_us, mask, payload
  FROM events WHERE partition_id = %s AND segment_id = %s AND sequence = %s
