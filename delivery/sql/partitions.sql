-- Partitions of deliveries and attempts.

-- name: lead
-- One forwarder at a time; released with its transaction.
SELECT pg_try_advisory_xact_lock(hashtext('eventhub partitions'))

-- name: groups_without_partition
-- Groups that need one and have none: those that new segments go to; and those with a segment that is open, or was
-- sealed not long ago, or is not wholly forwarded. None whose events went.
SELECT g.id FROM groups g
 WHERE to_regclass('deliveries_g' || g.id) IS NULL AND to_regclass('events_g' || g.id) IS NOT NULL
   AND (g.id >= (SELECT current_group FROM log_state)
        OR EXISTS (SELECT FROM segments s LEFT JOIN forwarding f USING (stream_id)
                    WHERE s.group_id = g.id
                      AND (s.last IS NULL OR f.sequence < s.last
                           OR s.sealed_at > now() - make_interval(days => %(kept_days)s))))
 ORDER BY g.id

-- name: groups_over
-- Groups that have a partition and need it no longer.
SELECT g.id FROM groups g
 WHERE to_regclass('deliveries_g' || g.id) IS NOT NULL
   AND g.id < (SELECT current_group FROM log_state)
   AND NOT EXISTS (SELECT FROM segments s LEFT JOIN forwarding f USING (stream_id)
                    WHERE s.group_id = g.id
                      AND (s.last IS NULL OR f.sequence < s.last
                           OR s.sealed_at > now() - make_interval(days => %(kept_days)s)))
   AND NOT EXISTS (SELECT FROM fanouts n WHERE n.group_id = g.id)
 ORDER BY g.id

-- name: days_without_partition
-- Today and tomorrow, in UTC.
SELECT d::date FROM generate_series((now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + 1,
                                    interval '1 day') AS d
 WHERE to_regclass('attempts_' || to_char(d, 'YYYYMMDD')) IS NULL

-- name: days_over
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = 'attempts'::regclass
   AND c.relname < 'attempts_' || to_char((now() AT TIME ZONE 'UTC')::date - %(kept_days)s::integer, 'YYYYMMDD')
 ORDER BY 1

-- name: lead_retirement
-- Held until the connection is closed.
SELECT pg_try_advisory_lock(hashtext('eventhub retirement'))

-- name: detached
-- Left by a process that ended between a detachment and the drop, or within the detachment.
SELECT CASE WHEN c.relname LIKE 'deliveries%' THEN 'deliveries' ELSE 'attempts' END, c.relname
  FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
 WHERE c.relkind = 'r' AND c.relname ~ '^(deliveries_g[0-9]+|attempts_[0-9]{8})$'
   AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'deliveries'::regclass)
   AND (i.inhrelid IS NULL OR i.inhdetachpending)
 ORDER BY 2

-- name: attachment
-- Whether a partition's detachment was interrupted; no row if it is not attached at all.
SELECT i.inhdetachpending
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = %s::regclass AND c.relname = %s

-- name: newest_group
-- The newest group with a partition that is attached.
SELECT max(g.id) FROM groups g
  JOIN pg_class c ON c.relname = 'deliveries_g' || g.id
  JOIN pg_inherits i ON i.inhrelid = c.oid
 WHERE i.inhparent = 'deliveries'::regclass AND NOT i.inhdetachpending

-- name: move_pending
-- Some pending deliveries that nobody posts just now, with their events' stored bytes, to another group. A claim that has
-- run out ends with it.
WITH picked AS MATERIALIZED (
    SELECT group_id, endpoint_id, segment_id, sequence, run FROM deliveries
     WHERE group_id = %(group_id)s AND state = 'pending' AND (claim IS NULL OR next_attempt_at <= now())
     LIMIT %(rows_max)s
       FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM deliveries d USING picked p
     WHERE d.group_id = %(group_id)s AND d.endpoint_id = p.endpoint_id AND d.segment_id = p.segment_id
       AND d.sequence = p.sequence AND d.run = p.run
    RETURNING d.*
)
INSERT INTO deliveries (group_id, endpoint_id, segment_id, sequence, run, stream_id, ordered, registrations, shape, state,
                        attempts, next_attempt_at, payload, gap_first, gap_why, created_at)
SELECT %(newest)s, g.endpoint_id, g.segment_id, g.sequence, g.run, g.stream_id, g.ordered, g.registrations, g.shape, g.state,
       g.attempts, g.next_attempt_at, COALESCE(g.payload, e.payload), g.gap_first, g.gap_why, g.created_at
  FROM gone g
  LEFT JOIN events e ON e.group_id = %(group_id)s AND e.segment_id = g.segment_id AND e.sequence = g.sequence

-- name: pending_left
SELECT count(*) FROM deliveries WHERE group_id = %s AND state = 'pending'
