-- Versions of registrations as matchers want them: for one stream, with their bounds as that stream's sequences.
--
-- Rows of a version: id, registration, client, endpoint, ordered, since, until, language, filter as text, and the zone's
-- name if the stream is `system` (number 1). A barrier is opened once, however many versions it bounds.

-- name: roomy
-- For one transaction: 100,000 versions are joined in memory.
SET LOCAL work_mem = '64MB'

-- name: versions_of_stream
WITH bounds AS MATERIALIZED (
    SELECT b.id, b.sequences[array_position(b.streams, %(stream_id)s)] AS sequence
      FROM barriers b
     WHERE b.id IN (SELECT v.from_barrier FROM registration_versions v
                     WHERE v.streams @> ARRAY[%(stream_id)s]::bigint[] AND v.endpoint_id IS NOT NULL
                     UNION
                    SELECT v.until_barrier FROM registration_versions v
                     WHERE v.streams @> ARRAY[%(stream_id)s]::bigint[] AND v.endpoint_id IS NOT NULL)
)
SELECT v.id, v.registration_id, r.client_id, v.endpoint_id, e.ordered, f.sequence, u.sequence,
       v.language, v.filter::text,
       CASE WHEN %(stream_id)s = 1 THEN (SELECT name FROM zones z WHERE z.id = r.zone_id) END
  FROM registration_versions v
  JOIN registrations r ON r.id = v.registration_id
  JOIN bounds f ON f.id = v.from_barrier
  LEFT JOIN bounds u ON u.id = v.until_barrier
  LEFT JOIN endpoints e ON e.id = v.endpoint_id
 WHERE v.streams @> ARRAY[%(stream_id)s]::bigint[] AND v.endpoint_id IS NOT NULL
   AND (u.id IS NULL OR (u.sequence > %(after)s AND u.sequence > f.sequence))

-- name: versions_of_barrier
-- Those that begin or end at a barrier, also if they never held.
WITH bounds AS MATERIALIZED (
    SELECT b.id, b.sequences[array_position(b.streams, %(stream_id)s)] AS sequence
      FROM barriers b
     WHERE b.id IN (SELECT v.from_barrier FROM registration_versions v
                     WHERE (v.from_barrier = %(barrier)s OR v.until_barrier = %(barrier)s)
                       AND v.streams @> ARRAY[%(stream_id)s]::bigint[] AND v.endpoint_id IS NOT NULL
                     UNION
                    SELECT v.until_barrier FROM registration_versions v
                     WHERE (v.from_barrier = %(barrier)s OR v.until_barrier = %(barrier)s)
                       AND v.streams @> ARRAY[%(stream_id)s]::bigint[] AND v.endpoint_id IS NOT NULL)
)
SELECT v.id, v.registration_id, r.client_id, v.endpoint_id, e.ordered, f.sequence, u.sequence,
       v.language, v.filter::text,
       CASE WHEN %(stream_id)s = 1 THEN (SELECT name FROM zones z WHERE z.id = r.zone_id) END
  FROM registration_versions v
  JOIN registrations r ON r.id = v.registration_id
  JOIN bounds f ON f.id = v.from_barrier
  LEFT JOIN bounds u ON u.id = v.until_barrier
  LEFT JOIN endpoints e ON e.id = v.endpoint_id
 WHERE (v.from_barrier = %(barrier)s OR v.until_barrier = %(barrier)s)
   AND v.streams @> ARRAY[%(stream_id)s]::bigint[] AND v.endpoint_id IS NOT NULL

-- name: versions_of_registrations
-- With an endpoint or without.
WITH bounds AS MATERIALIZED (
    SELECT b.id, b.sequences[array_position(b.streams, %(stream_id)s)] AS sequence
      FROM barriers b
     WHERE b.id IN (SELECT v.from_barrier FROM registration_versions v
                     WHERE v.registration_id = ANY (%(registrations)s) AND v.streams @> ARRAY[%(stream_id)s]::bigint[]
                     UNION
                    SELECT v.until_barrier FROM registration_versions v
                     WHERE v.registration_id = ANY (%(registrations)s) AND v.streams @> ARRAY[%(stream_id)s]::bigint[])
)
SELECT v.id, v.registration_id, r.client_id, v.endpoint_id, COALESCE(e.ordered, false), f.sequence, u.sequence,
       v.language, v.filter::text,
       CASE WHEN %(stream_id)s = 1 THEN (SELECT name FROM zones z WHERE z.id = r.zone_id) END
  FROM registration_versions v
  JOIN registrations r ON r.id = v.registration_id
  JOIN bounds f ON f.id = v.from_barrier
  LEFT JOIN bounds u ON u.id = v.until_barrier
  LEFT JOIN endpoints e ON e.id = v.endpoint_id
 WHERE v.registration_id = ANY (%(registrations)s) AND v.streams @> ARRAY[%(stream_id)s]::bigint[]
   AND (u.id IS NULL OR (u.sequence > %(after)s AND u.sequence > f.sequence))

-- name: streams_with_callbacks
-- Streams beside the known ones, each with the lowest place from which a version with an endpoint holds.
SELECT s.id, first.segment::text, first.sequence
  FROM streams s
 CROSS JOIN LATERAL (
    SELECT b.segments[array_position(b.streams, s.id)] AS segment,
           b.sequences[array_position(b.streams, s.id)] AS sequence
      FROM barriers b
     WHERE b.id IN (SELECT v.from_barrier FROM registration_versions v
                     WHERE v.streams @> ARRAY[s.id] AND v.endpoint_id IS NOT NULL)
     ORDER BY 2
     LIMIT 1
 ) AS first
 WHERE s.id <> ALL (%(known)s)
 ORDER BY s.id

-- name: live_registrations
-- The current versions of some registrations of a client.
SELECT r.id, v.streams
  FROM registrations r
  JOIN registration_versions v ON v.registration_id = r.id AND v.until_barrier IS NULL
 WHERE r.id = ANY (%(registrations)s) AND r.client_id = %(client_id)s AND r.deleted_at IS NULL
 ORDER BY r.id
