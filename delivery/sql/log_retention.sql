-- The events that deliveries still need, and the deliveries that outlive their events.

-- name: needed
-- The lowest sequence of each stream that is not forwarded yet, whose fan-out is not fully written, that a pattern group would
-- read after a restart, or that a reliable session has not acknowledged. A session counts while it has registrations of the stream, and for 7 days after it was connected or
-- acknowledged something: an abandoned one must not fill the disk.
SELECT stream_id, min(sequence) AS sequence
  FROM (SELECT stream_id, sequence + 1 AS sequence FROM forwarding
        UNION ALL SELECT stream_id, sequence FROM fanouts
        UNION ALL
        SELECT c.stream_id, c.sequence + 1
          FROM pattern_leases l
          LEFT JOIN pattern_states s USING (group_id)
         CROSS JOIN LATERAL unnest(COALESCE(s.streams, l.streams), COALESCE(s.sequences, l.sequences)) AS c (stream_id, sequence)
        UNION ALL
        SELECT c.stream_id, c.sequence + 1
          FROM (SELECT g.id, s.id FROM registration_groups g JOIN sessions s ON s.id = g.session_id
                UNION ALL
                SELECT g.id, s.id FROM registration_groups g JOIN sessions s ON s.group_id = g.session_group_id) AS o (group_id, session_id)
          JOIN group_streams r ON r.group_id = o.group_id AND r.registrations > 0
          JOIN session_cursors c ON c.session_id = o.session_id AND c.stream_id = r.stream_id
          JOIN sessions s ON s.id = o.session_id AND s.deleted_at IS NULL
          LEFT JOIN session_groups m ON m.id = s.group_id
         WHERE COALESCE(m.quality, s.quality) = 'reliable'
           AND GREATEST(c.saved_at, s.attached_at) > now() - interval '7 days') AS n
 GROUP BY stream_id

-- name: copy_events
-- Copies events into some pending deliveries, if the events are in a partition about to be dropped, and in no other.
WITH picked AS MATERIALIZED (
    SELECT d.partition_id, d.endpoint_id, d.segment_id, d.sequence, e.payload
      FROM deliveries d
      JOIN segments s ON s.id = d.segment_id AND s.tier <> 'live'
      JOIN events e ON e.partition_id = %(partition_id)s AND e.segment_id = d.segment_id AND e.sequence = d.sequence
     WHERE d.state = 'pending' AND d.payload IS NULL AND d.gap_first IS NULL
     LIMIT %(rows_max)s
)
UPDATE deliveries d SET payload = p.payload
  FROM picked p
 WHERE d.partition_id = p.partition_id AND d.endpoint_id = p.endpoint_id AND d.segment_id = p.segment_id
   AND d.sequence = p.sequence AND d.state = 'pending' AND d.gap_first IS NULL

-- name: outlived
-- Partitions of deliveries without a partition of events, the oldest first.
SELECT g.id FROM event_partitions g
 WHERE g.id < (SELECT current_partition FROM log_state)
   AND to_regclass('deliveries_p' || g.id) IS NOT NULL AND to_regclass('events_p' || g.id) IS NULL
   AND NOT EXISTS (SELECT FROM fanouts f WHERE f.partition_id = g.id)
 ORDER BY g.id

-- name: is_empty
SELECT NOT EXISTS (SELECT FROM deliveries WHERE partition_id = %s)

-- name: lock_retirement
SELECT pg_try_advisory_lock(hashtext('eventhub retirement'))

-- name: unlock_retirement
SELECT pg_advisory_unlock(hashtext('eventhub retirement'))
