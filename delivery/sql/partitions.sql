-- Partitions of deliveries, attempts and listeners.

-- name: lead
-- One forwarder at a time creates partitions; released with its transaction.
SELECT pg_try_advisory_xact_lock(hashtext('eventhub partitions'))

-- name: lead_waiting
SELECT pg_advisory_xact_lock(hashtext('eventhub partitions'))

-- name: missing_partitions
-- Partitions of events that need a partition of deliveries: those that new segments use, and those with a segment that is open,
-- was sealed recently, or is not fully forwarded; but none without events.
SELECT g.id FROM event_partitions g
 WHERE to_regclass('deliveries_p' || g.id) IS NULL AND to_regclass('events_p' || g.id) IS NOT NULL
   AND (g.id >= (SELECT current_partition FROM log_state)
        OR EXISTS (SELECT FROM segments s LEFT JOIN forwarding f USING (stream_id)
                    WHERE s.partition_id = g.id
                      AND (s.last IS NULL OR f.sequence < s.last
                           OR s.sealed_at > now() - make_interval(days => %(retained_days)s))))
 ORDER BY g.id

-- name: missing_days
-- Today and tomorrow, in UTC, of the tables that are partitioned by day.
SELECT p AS parent, d::date AS day
  FROM unnest(ARRAY['attempts', 'listeners']) AS p,
       generate_series((now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + 1, interval '1 day') AS d
 WHERE to_regclass(p || '_' || to_char(d, 'YYYYMMDD')) IS NULL
