-- name: covering_segments
-- The segments from the one with `after + 1` on, until they hold `events_max` events, each with the last sequence that must be
-- there: for the open one, that of the head at the same moment. `known`: whether the reader's segment has `after`; null if the
-- segment is not of this stream.
SELECT id, uuid, partition_id, last, tier, first, archive_path AS archive, known
  FROM (SELECT *, sum(last - GREATEST(first - 1, %(after)s)) OVER (
                      ORDER BY first, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS events_before
          FROM (SELECT s.id, s.uuid::text, s.partition_id, COALESCE(s.last, h.sequence) AS last, s.tier, s.first, s.archive_path,
                       %(after)s BETWEEN c.first - 1 AND COALESCE(c.last, h.sequence) AS known
                  FROM heads h JOIN segments s USING (stream_id)
                  LEFT JOIN segments c ON c.uuid = %(segment)s::uuid AND c.stream_id = h.stream_id
                 WHERE h.stream_id = %(stream_id)s AND (s.last IS NULL OR s.last > %(after)s)
                   AND s.first >= COALESCE((SELECT max(b.first) FROM segments b
                                             WHERE b.stream_id = %(stream_id)s AND b.first <= %(after)s + 1), 0)
                 ORDER BY s.first, s.id
                 LIMIT %(segments_max)s) AS following) AS counted
 WHERE COALESCE(events_before, 0) < %(events_max)s
 ORDER BY first, id

-- name: events_after
-- At most `events_max` rows and `bytes_max` bytes, but at least one row. The partition is given, so only that one is touched.
SELECT sequence, mask, (extract(epoch FROM appended_at) * 1000000)::bigint AS at_us, payload
  FROM (SELECT sequence, mask, appended_at, payload,
               sum(octet_length(payload)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) - octet_length(payload) AS bytes_before
          FROM events
         WHERE partition_id = %(partition_id)s AND segment_id = %(segment_id)s AND sequence > %(after)s
         ORDER BY sequence
         LIMIT %(events_max)s) AS page
 WHERE bytes_before < %(bytes_max)s
 ORDER BY sequence

-- name: next_events
-- The same of the segment of a ring, and the head of `system` in the same snapshot: it has every change of registrations that was
-- made before the last of these events was appended.
SELECT sequence, mask, (extract(epoch FROM appended_at) * 1000000)::bigint AS at_us, payload,
       (SELECT sequence FROM heads WHERE stream_id = 1) AS system
  FROM (SELECT sequence, mask, appended_at, payload,
               sum(octet_length(payload)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) - octet_length(payload) AS bytes_before
          FROM events
         WHERE partition_id = %(partition_id)s AND segment_id = %(segment_id)s AND sequence > %(after)s
         ORDER BY sequence
         LIMIT %(events_max)s) AS page
 WHERE bytes_before < %(bytes_max)s
 ORDER BY sequence

-- name: packed_events
-- The events after one of a segment, as bytes: of each its sequence, mask, time and size, and the stored bytes (PackedEvents in
-- transcoder.cpp). Events of more than `payload_max` bytes are left out; as `events_max` of these are within the bounds of a page,
-- no sum has to be kept.
SELECT string_agg(int8send(sequence) || int8send(mask) || timestamptz_send(appended_at) || int4send(octet_length(payload)) || payload,
                  ''::bytea) FILTER (WHERE octet_length(payload) <= %(payload_max)s) AS packed
  FROM (SELECT sequence, mask, appended_at, payload
          FROM events
         WHERE partition_id = %(partition_id)s AND segment_id = %(segment_id)s AND sequence > %(after)s
           AND EXISTS (SELECT FROM segments WHERE id = %(segment_id)s AND uuid = %(segment)s AND tier = 'live')
         ORDER BY sequence
         LIMIT %(events_max)s) AS page

-- name: place
-- The ids of a segment in the database and of its partition.
SELECT uuid::text, id, partition_id FROM segments WHERE uuid = %s::uuid AND tier = 'live'

-- name: events_of_segments
-- The events of several segments of one partition that are read completely.
SELECT sequence, mask, (extract(epoch FROM appended_at) * 1000000)::bigint AS at_us, payload
  FROM (SELECT sequence, mask, appended_at, payload,
               sum(octet_length(payload)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) - octet_length(payload) AS bytes_before
          FROM events
         WHERE partition_id = %(partition_id)s AND segment_id = ANY (%(segment_ids)s) AND sequence > %(after)s) AS page
 WHERE bytes_before < %(bytes_max)s
 ORDER BY sequence

-- name: heads
SELECT stream_id, segment::text, sequence FROM heads WHERE stream_id = ANY(%s)

-- name: position_now
SELECT segment::text, first, sequence AS last FROM heads WHERE stream_id = %s

-- name: available_after
-- The first readable segment after a sequence.
SELECT uuid::text AS segment, first, last FROM segments
 WHERE stream_id = %s AND tier <> 'dropped' AND (last IS NULL OR last > %s)
 ORDER BY first, id LIMIT 1

-- name: segment_by_uuid
-- The open segment of a stream, its last sequence, and a segment by its UUID, or NULLs.
SELECT h.segment::text, h.first, h.sequence AS last, s.first AS named_first, s.last AS named_last, s.tier
  FROM heads h LEFT JOIN segments s ON s.stream_id = h.stream_id AND s.uuid = %s::uuid
 WHERE h.stream_id = %s

-- name: position_at_boot
SELECT boot_segment::text AS segment, boot_sequence AS sequence FROM streams WHERE id = %s AND boot_segment IS NOT NULL

-- name: segment_at
-- The first readable segment that is open or whose last event was appended at a time or later.
SELECT s.id, s.uuid::text, s.partition_id, s.first, COALESCE(s.last, h.sequence) AS last, s.tier
  FROM segments s JOIN heads h USING (stream_id)
 WHERE s.stream_id = %(stream_id)s AND s.tier <> 'dropped'
   AND (s.sealed_at IS NULL OR s.sealed_at >= 'epoch'::timestamptz + %(time_us)s * interval '1 microsecond')
 ORDER BY s.first, s.id
 LIMIT 1

-- name: appended_at
SELECT (extract(epoch FROM appended_at) * 1000000)::bigint
  FROM events WHERE partition_id = %s AND segment_id = %s AND sequence = %s

-- name: find_stream
SELECT s.id, s.zone_id, s.name, s.durability, s.keyed, s.undeclared, s.retain_events, s.retain_bytes, s.quench,
       s.filterable_data,
       (extract(epoch FROM least(s.deletes_at, z.deletes_at)) * 1000000)::bigint AS deletes_at_us
  FROM streams s LEFT JOIN zones z ON z.id = s.zone_id
 WHERE s.zone_id IS NOT DISTINCT FROM %s AND s.name = %s AND s.deleted_at IS NULL
