-- Deliveries as the management API shows them. Zone and client (null: all of the zone) bound what is found.

-- name: of_endpoint
-- A page of an endpoint's deliveries, of the newest segments first, after a place; of the streams that the actor may
-- listen to: by patterns (null: all), and to `system`.
SELECT d.endpoint_id, d.partition_id, d.segment_id, d.sequence, d.run, s.name, g.uuid::text, d.registrations, d.state,
       d.attempts, (extract(epoch FROM d.next_attempt_at) * 1000000)::bigint,
       (extract(epoch FROM d.created_at) * 1000000)::bigint,
       (extract(epoch FROM d.finished_at) * 1000000)::bigint, d.gap_first, d.gap_reason
  FROM deliveries d
  JOIN segments g ON g.id = d.segment_id
  JOIN streams s ON s.id = d.stream_id
 WHERE d.endpoint_id = %(endpoint)s
   AND (%(state)s::text IS NULL OR d.state = %(state)s)
   AND (%(stream)s::bigint IS NULL OR d.stream_id = %(stream)s)
   AND CASE WHEN s.name = 'system' THEN %(system)s
            ELSE %(patterns)s::text[] IS NULL OR s.name LIKE ANY (%(patterns)s::text[]) END
   AND (%(group)s::integer IS NULL
        OR (d.partition_id, d.segment_id, d.sequence, d.run) < (%(group)s, %(segment)s, %(sequence)s, %(run)s))
 ORDER BY d.partition_id DESC, d.segment_id DESC, d.sequence DESC, d.run DESC
 LIMIT %(count)s

-- name: of_zone
-- A page of a zone's deliveries that ended without being delivered, of the newest segments first, after a place, whatever
-- their endpoints: of a client, a stream, and the streams that the actor may listen to. It looks at so many at most, so
-- that what is left out costs nobody; the last it looked at is given too (not `shown`) if there may be more behind it.
SELECT l.endpoint_id, l.partition_id, l.segment_id, l.sequence, l.run, s.name, g.uuid::text, l.registrations, l.state,
       l.attempts, (extract(epoch FROM l.next_attempt_at) * 1000000)::bigint,
       (extract(epoch FROM l.created_at) * 1000000)::bigint,
       (extract(epoch FROM l.finished_at) * 1000000)::bigint, l.gap_first, l.gap_reason,
       w.shown, l.number = %(looks_max)s
  FROM (SELECT d.*, row_number() OVER (ORDER BY d.partition_id DESC, d.segment_id DESC, d.sequence DESC, d.endpoint_id DESC,
                                                d.run DESC) AS number
          FROM (SELECT * FROM deliveries
                 WHERE zone_id = %(zone_id)s AND state = %(state)s AND state NOT IN ('pending', 'delivered')
                   AND (%(group)s::integer IS NULL
                        OR (partition_id <= %(group)s
                            AND (partition_id, segment_id, sequence, endpoint_id, run)
                                < (%(group)s, %(segment)s, %(sequence)s, %(endpoint)s, %(run)s)))
                 ORDER BY partition_id DESC, segment_id DESC, sequence DESC, endpoint_id DESC, run DESC
                 LIMIT %(looks_max)s) AS d) AS l
  JOIN endpoints e ON e.id = l.endpoint_id
  JOIN segments g ON g.id = l.segment_id
  JOIN streams s ON s.id = l.stream_id,
       LATERAL (SELECT (%(client_id)s::bigint IS NULL OR e.client_id = %(client_id)s)
                   AND (%(stream)s::bigint IS NULL OR l.stream_id = %(stream)s)
                   AND CASE WHEN s.name = 'system' THEN %(system)s
                            ELSE %(patterns)s::text[] IS NULL OR s.name LIKE ANY (%(patterns)s::text[]) END
                    AS shown) AS w
 WHERE w.shown OR l.number = %(looks_max)s
 ORDER BY l.number
 LIMIT %(count)s

-- name: of_event
-- A page of one event's deliveries by endpoint, then by run.
SELECT d.endpoint_id, d.partition_id, d.segment_id, d.sequence, d.run, s.name, g.uuid::text, d.registrations, d.state,
       d.attempts, (extract(epoch FROM d.next_attempt_at) * 1000000)::bigint,
       (extract(epoch FROM d.created_at) * 1000000)::bigint,
       (extract(epoch FROM d.finished_at) * 1000000)::bigint, d.gap_first, d.gap_reason
  FROM endpoints e
  JOIN deliveries d ON d.endpoint_id = e.id AND d.segment_id = %(segment)s AND d.sequence = %(sequence)s
  JOIN segments g ON g.id = d.segment_id
  JOIN streams s ON s.id = d.stream_id
 WHERE e.zone_id = %(zone_id)s AND (%(client_id)s::bigint IS NULL OR e.client_id = %(client_id)s)
   AND (%(state)s::text IS NULL OR d.state = %(state)s)
   AND (e.id, d.run) > (%(endpoint)s, %(run)s)
 ORDER BY e.id, d.run
 LIMIT %(count)s

-- name: one
-- Found also after it moved to another group.
SELECT d.endpoint_id, d.partition_id, d.segment_id, d.sequence, d.run, s.name, g.uuid::text, d.registrations, d.state,
       d.attempts, (extract(epoch FROM d.next_attempt_at) * 1000000)::bigint,
       (extract(epoch FROM d.created_at) * 1000000)::bigint,
       (extract(epoch FROM d.finished_at) * 1000000)::bigint, d.gap_first, d.gap_reason
  FROM deliveries d
  JOIN endpoints e ON e.id = d.endpoint_id
  JOIN segments g ON g.id = d.segment_id
  JOIN streams s ON s.id = d.stream_id
 WHERE d.endpoint_id = %(endpoint)s AND d.segment_id = %(segment)s AND d.sequence = %(sequence)s AND d.run = %(run)s
   AND e.zone_id = %(zone_id)s AND (%(client_id)s::bigint IS NULL OR e.client_id = %(client_id)s)

-- name: event
-- The stored bytes of a delivery's event, wherever they are still held.
SELECT COALESCE(v.payload, d.payload), (extract(epoch FROM COALESCE(v.appended_at, d.created_at)) * 1000000)::bigint
  FROM deliveries d
  JOIN segments g ON g.id = d.segment_id
  LEFT JOIN events v ON v.partition_id = g.partition_id AND v.segment_id = d.segment_id AND v.sequence = d.sequence
 WHERE d.partition_id = %(group)s AND d.endpoint_id = %(endpoint)s AND d.segment_id = %(segment)s
   AND d.sequence = %(sequence)s AND d.run = %(run)s

-- name: tries
SELECT number, (extract(epoch FROM attempted_at) * 1000000)::bigint, outcome, status, duration_ms, url, request, response
  FROM attempts
 WHERE endpoint_id = %(endpoint)s AND segment_id = %(segment)s AND sequence = %(sequence)s AND run = %(run)s
 ORDER BY attempted_at DESC, number DESC
 LIMIT %(count)s

-- name: segment
-- The last segment that begins at or before the sequence.
SELECT id FROM segments WHERE stream_id = %(stream)s AND first <= %(sequence)s ORDER BY first DESC, id DESC LIMIT 1

-- name: has_endpoint
-- A deleted one too: its deliveries are still there.
SELECT EXISTS (SELECT FROM endpoints
                WHERE id = %(endpoint)s AND zone_id = %(zone_id)s
                  AND (%(client_id)s::bigint IS NULL OR client_id = %(client_id)s))
