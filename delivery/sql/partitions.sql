-- Partitions of deliveries, attempts and listeners.

-- name: lead
-- One forwarder at a time; released with its transaction.
SELECT pg_try_advisory_xact_lock(hashtext('eventhub partitions'))

-- name: lead_after
SELECT pg_advisory_xact_lock(hashtext('eventhub partitions'))

-- name: groups_without_partition
-- Groups that need one and have none: those that new segments go to; and those with a segment that is open, or was
-- sealed not long ago, or is not wholly forwarded. None whose events went.
SELECT g.id FROM event_partitions g
 WHERE to_regclass('deliveries_p' || g.id) IS NULL AND to_regclass('events_p' || g.id) IS NOT NULL
   AND (g.id >= (SELECT current_partition FROM log_state)
        OR EXISTS (SELECT FROM segments s LEFT JOIN forwarding f USING (stream_id)
                    WHERE s.partition_id = g.id
                      AND (s.last IS NULL OR f.sequence < s.last
                           OR s.sealed_at > now() - make_interval(days => %(kept_days)s))))
 ORDER BY g.id

-- name: days_without_partition
-- Today and tomorrow, in UTC, of the tables that are partitioned by day.
SELECT p AS parent, d::date AS day
  FROM unnest(ARRAY['attempts', 'listeners']) AS p,
       generate_series((now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + 1, interval '1 day') AS d
 WHERE to_regclass(p || '_' || to_char(d, 'YYYYMMDD')) IS NULL
