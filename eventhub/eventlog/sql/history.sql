-- The ends of a stream, and cursors for paging backward.

-- name: ends
-- The last event, and the first readable sequence.
SELECT h.segment::text, h.sequence,
       COALESCE((SELECT min(s.first) FROM segments s WHERE s.stream_id = h.stream_id AND s.tier <> 'dropped'), h.first) AS first
  FROM heads h WHERE h.stream_id = %s

-- name: before
-- The cursor `count` events before an event, across segments, or as far back as all events between are readable.
WITH high AS (
    SELECT first FROM segments
     WHERE stream_id = %(stream_id)s AND tier <> 'dropped' AND first <= %(sequence)s
     ORDER BY first DESC, id DESC LIMIT 1
), low AS (
    SELECT GREATEST(%(sequence)s - %(count)s, min(s.first) - 1, max(s.last) FILTER (WHERE s.tier = 'dropped')) AS sequence
      FROM high JOIN segments s ON s.stream_id = %(stream_id)s AND s.first <= high.first
)
SELECT s.uuid::text AS segment, low.sequence
  FROM low JOIN segments s ON s.stream_id = %(stream_id)s AND s.tier <> 'dropped'
                          AND s.first <= low.sequence + 1 AND (s.last IS NULL OR s.last > low.sequence)
 ORDER BY s.first DESC, s.id DESC
 LIMIT 1

-- name: segment
SELECT uuid::text, first, last, tier, archive_path AS archive FROM segments WHERE stream_id = %s AND uuid = %s::uuid
