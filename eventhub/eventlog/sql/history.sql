-- Where a stream begins and ends, and the way back through it.

-- name: ends
-- The last event, and the first that can be read.
SELECT h.segment::text, h.sequence,
       COALESCE((SELECT min(s.first) FROM segments s WHERE s.stream_id = h.stream_id AND s.tier <> 'dropped'), h.first)
  FROM heads h WHERE h.stream_id = %s

-- name: before
-- In the readable segment that holds an event, the cursor so many events before it, or before the segment's first.
SELECT uuid::text, GREATEST(first - 1, %(sequence)s - %(count)s)
  FROM segments
 WHERE stream_id = %(stream_id)s AND tier <> 'dropped' AND first <= %(sequence)s
 ORDER BY first DESC, id DESC
 LIMIT 1

-- name: segment
SELECT uuid::text, first, last, tier, archive FROM segments WHERE stream_id = %s AND uuid = %s::uuid
