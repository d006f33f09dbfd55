-- What of deliveries the ORM does not list. Zone and client (null: all of the zone) bound what is found.

-- name: of_zone
-- A page of a zone's deliveries that ended without being delivered, of the newest segments first, after a place, whatever
-- their endpoints: of a client, a stream, and the streams that the actor may listen to. It looks at so many at most, so
-- that what is left out costs nobody; the last it looked at is given too (not `shown`) if there may be more behind it.
SELECT l.endpoint_id, l.partition_id, l.segment_id, l.sequence, l.run, s.name AS stream_name, g.uuid::text AS segment_uuid,
       l.registrations, l.state, l.attempts, l.next_attempt_at, l.created_at, l.finished_at, l.gap_first, l.gap_reason,
       w.shown, l.number = %(looks_max)s AS last
  FROM (SELECT d.*, row_number() OVER (ORDER BY d.partition_id DESC, d.segment_id DESC, d.sequence DESC, d.endpoint_id DESC,
                                                d.run DESC) AS number
          FROM (SELECT * FROM deliveries
                 WHERE zone_id = %(zone_id)s AND state = %(state)s AND state NOT IN ('pending', 'delivered')
                   AND (%(partition_id)s::integer IS NULL
                        OR (partition_id <= %(partition_id)s
                            AND (partition_id, segment_id, sequence, endpoint_id, run)
                                < (%(partition_id)s, %(segment_id)s, %(sequence)s, %(endpoint_id)s, %(run)s)))
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

-- name: event
-- The stored bytes of a delivery's event, wherever they are still held.
SELECT COALESCE(v.payload, d.payload)
  FROM deliveries d
  JOIN segments g ON g.id = d.segment_id
  LEFT JOIN events v ON v.partition_id = g.partition_id AND v.segment_id = d.segment_id AND v.sequence = d.sequence
 WHERE d.partition_id = %(partition_id)s AND d.endpoint_id = %(endpoint_id)s AND d.segment_id = %(segment_id)s
   AND d.sequence = %(sequence)s AND d.run = %(run)s
