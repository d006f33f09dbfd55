-- name: covering_segments
-- The segments from the one that holds `after + 1` on, each with the last sequence that must be there: of the open one,
-- what the head said at the same moment.
SELECT s.id, s.uuid::text, s.group_id, COALESCE(s.last, h.sequence), s.tier
  FROM segments s JOIN heads h USING (stream_id)
 WHERE stream_id = %(stream_id)s AND (s.last IS NULL OR s.last > %(after)s)
 ORDER BY s.first
 LIMIT %(segments_max)s

-- name: events_after
-- At most so many rows and so many bytes (always one row); the group is given, so one partition is touched.
SELECT sequence, mask, (extract(epoch FROM appended_at) * 1000000)::bigint, payload
  FROM (SELECT sequence, mask, appended_at, payload,
               sum(octet_length(payload)) OVER (ORDER BY sequence) - octet_length(payload) AS bytes_before
          FROM events
         WHERE group_id = %(group_id)s AND segment_id = %(segment_id)s AND sequence > %(after)s
         ORDER BY sequence
         LIMIT %(events_max)s) AS page
 WHERE bytes_before < %(bytes_max)s
 ORDER BY sequence

-- name: heads
SELECT stream_id, sequence FROM heads WHERE stream_id = ANY(%s)

-- name: position_now
SELECT segment::text, first, sequence FROM heads WHERE stream_id = %s

-- name: oldest_segment
SELECT uuid::text, first, last FROM segments
 WHERE stream_id = %s AND tier <> 'dropped' ORDER BY first LIMIT 1

-- name: segment_by_uuid
SELECT uuid::text, first, last, tier FROM segments WHERE stream_id = %s AND uuid = %s::uuid

-- name: find_stream
SELECT id FROM streams WHERE zone_id IS NOT DISTINCT FROM %s AND name = %s
