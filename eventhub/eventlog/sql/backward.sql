-- The events of a stream, newest first.

-- name: segments_before
-- The segments in the database that have events before a sequence and may have some of a period of time, newest first.
SELECT id, partition_id, first
  FROM segments
 WHERE stream_id = %(stream_id)s AND tier = 'live' AND first < %(before)s
   AND (%(until)s::timestamptz IS NULL OR opened_at <= %(until)s)
   AND (%(since)s::timestamptz IS NULL OR sealed_at IS NULL OR sealed_at >= %(since)s)
 ORDER BY first DESC, id DESC
 LIMIT %(segments_max)s

-- name: events_before
-- At most `events_max` events of a segment before a sequence, newest first, with their times in microseconds.
SELECT sequence, (extract(epoch FROM appended_at) * 1000000)::bigint AS at_us, payload
  FROM events
 WHERE partition_id = %(partition_id)s AND segment_id = %(segment_id)s AND sequence < %(before)s
 ORDER BY sequence DESC
 LIMIT %(events_max)s
