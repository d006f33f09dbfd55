-- name: lock_heads
-- The one lock of an append, in stream order: an UPDATE joined to unnest would lock in hash order and deadlock.
SELECT h.stream_id, h.segment_id, h.segment::text, h.group_id, h.first, h.sequence, h.bytes,
       s.segment_events_max, s.segment_bytes_max,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
  FROM heads h JOIN streams s ON s.id = h.stream_id
 WHERE h.stream_id = ANY(%b::bigint[])
 ORDER BY h.stream_id
   FOR NO KEY UPDATE OF h

-- name: find_producers
SELECT p.stream_id, p.client_id, p.incarnation, p.highest
  FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[]) AS v (stream_id, client_id, incarnation)
  JOIN producers p USING (stream_id, client_id, incarnation)

-- name: find_numbers
SELECT n.stream_id, n.client_id, n.incarnation, n.number, n.segment::text, n.sequence
  FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::int[], %b::bigint[])
       AS v (stream_id, client_id, incarnation, slot, number)
  JOIN producer_numbers n USING (stream_id, client_id, incarnation, slot, number)

-- name: open_segments
-- Rolling is rows only; making partitions is the maintainer's, ahead of need.
WITH v AS (
    SELECT * FROM unnest(%b::uuid[], %b::bigint[], %b::bigint[]) WITH ORDINALITY
        AS v (uuid, stream_id, first, n)
)
INSERT INTO segments (uuid, stream_id, group_id, first)
SELECT uuid, stream_id, (SELECT current_group FROM log_state), first FROM v ORDER BY n
RETURNING id, uuid::text, group_id

-- name: seal_segments
UPDATE segments s
   SET last = v.last, bytes = v.bytes, sealed_at = now()
  FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[]) AS v (id, last, bytes)
 WHERE s.id = v.id

-- name: insert_events
INSERT INTO events (segment_id, sequence, mask, group_id, payload, appended_at)
SELECT segment_id, sequence, mask, group_id, payload, to_timestamp(%b::bigint / 1000000.0)
  FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::int[], %b::bytea[])
       AS v (segment_id, sequence, mask, group_id, payload)

-- name: move_heads
UPDATE heads h
   SET segment_id = v.segment_id, segment = v.segment, group_id = v.group_id,
       first = v.first, sequence = v.sequence, bytes = v.bytes
  FROM unnest(%b::bigint[], %b::bigint[], %b::uuid[], %b::int[], %b::bigint[], %b::bigint[], %b::bigint[])
       AS v (stream_id, segment_id, segment, group_id, first, sequence, bytes)
 WHERE h.stream_id = v.stream_id

-- name: put_producers
INSERT INTO producers AS p (stream_id, client_id, incarnation, highest)
SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[])
    ON CONFLICT (stream_id, client_id, incarnation)
    DO UPDATE SET highest = EXCLUDED.highest, seen_at = now()

-- name: put_numbers
INSERT INTO producer_numbers AS n (stream_id, client_id, incarnation, slot, number, segment, sequence)
SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::int[], %b::bigint[], %b::uuid[], %b::bigint[])
    ON CONFLICT (stream_id, client_id, incarnation, slot)
    DO UPDATE SET number = EXCLUDED.number, segment = EXCLUDED.segment, sequence = EXCLUDED.sequence

-- name: notify
-- Never inside the appending transaction: there it would serialise every commit of the server.
SELECT pg_notify('eventhub_heads', %s)
