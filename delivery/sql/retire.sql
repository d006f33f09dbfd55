-- Partitions of deliveries, attempts and listeners that are due to be retired, and the record of retired ones.

-- name: lead_retirement
-- Held until the connection is closed or released before: the server may take a while to notice a closed connection.
SELECT pg_try_advisory_lock(hashtext('eventhub retirement'))

-- name: end_retirement
SELECT pg_advisory_unlock(hashtext('eventhub retirement'))

-- name: detached
-- Partitions of a process that ended between the detachment and the drop, or during the detachment.
SELECT split_part(c.relname, '_', 1) AS parent, c.relname AS name
  FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
 WHERE c.relkind = 'r' AND c.relname ~ '^(deliveries_p[0-9]+|(attempts|listeners)_[0-9]{8})$'
   AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'deliveries'::regclass)
   AND (i.inhrelid IS NULL OR i.inhdetachpending)
 ORDER BY 2

-- name: expired_days
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = %(parent)s::text::regclass
   AND c.relname < %(parent)s::text || '_'
                   || to_char((now() AT TIME ZONE 'UTC')::date - %(retained_days)s::integer, 'YYYYMMDD')
 ORDER BY 1

-- name: seal_quiet
-- Seals segments that were opened long ago and are still open in a partition that is out of use, also empty ones: the deliveries
-- of their partition would never be retired.
SELECT count(*) FROM roll_segments(ARRAY(
    SELECT s.stream_id FROM segments s JOIN heads h ON h.segment_id = s.id
     WHERE s.partition_id < (SELECT current_partition FROM log_state) AND to_regclass('deliveries_p' || s.partition_id) IS NOT NULL
       AND s.opened_at < now() - make_interval(days => %(retained_days)s)
     ORDER BY s.stream_id LIMIT %(streams_max)s), true)

-- name: expired_partitions
-- Partitions of deliveries that are no longer needed.
SELECT g.id FROM event_partitions g
 WHERE to_regclass('deliveries_p' || g.id) IS NOT NULL
   AND g.id < (SELECT current_partition FROM log_state)
   AND NOT EXISTS (SELECT FROM segments s LEFT JOIN forwarding f USING (stream_id)
                    WHERE s.partition_id = g.id
                      AND (s.last IS NULL OR f.sequence < s.last
                           OR s.sealed_at > now() - make_interval(days => %(retained_days)s)))
   AND NOT EXISTS (SELECT FROM fanouts n WHERE n.partition_id = g.id)
 ORDER BY g.id

-- name: newest_partition
-- The newest attached partition of deliveries.
SELECT max(g.id) FROM event_partitions g
  JOIN pg_class c ON c.relname = 'deliveries_p' || g.id
  JOIN pg_inherits i ON i.inhrelid = c.oid
 WHERE i.inhparent = 'deliveries'::regclass AND NOT i.inhdetachpending

-- name: move_pending
-- Moves some pending deliveries that are not being posted, with their events' stored bytes, to another partition. An expired
-- claim is removed.
WITH picked AS MATERIALIZED (
    SELECT partition_id, endpoint_id, segment_id, sequence FROM deliveries
     WHERE partition_id = %(partition_id)s AND state = 'pending' AND (claim IS NULL OR is_over(next_attempt_at, %(claim_s)s))
     LIMIT %(rows_max)s
       FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM deliveries d USING picked p
     WHERE d.partition_id = %(partition_id)s AND d.endpoint_id = p.endpoint_id AND d.segment_id = p.segment_id
       AND d.sequence = p.sequence
    RETURNING d.*
)
INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id, zone_id, ordered, lane, registrations, version_ids,
                        state, attempts, uncounted_attempts, retry_after_s, pause_s, next_attempt_at, payload, gap_first, gap_reason, created_at,
                        last_outcome, last_status, resent_at, message_number, forced)
SELECT %(newest)s, g.endpoint_id, g.segment_id, g.sequence, g.stream_id, g.zone_id, g.ordered, g.lane, g.registrations, g.version_ids,
       g.state, g.attempts, g.uncounted_attempts, g.retry_after_s, g.pause_s, g.next_attempt_at, COALESCE(g.payload, e.payload), g.gap_first, g.gap_reason,
       g.created_at, g.last_outcome, g.last_status, g.resent_at, g.message_number, g.forced
  FROM removed g
  LEFT JOIN events e ON e.partition_id = %(partition_id)s AND e.segment_id = g.segment_id AND e.sequence = g.sequence
                    AND g.gap_first IS NULL

-- name: pending_left
SELECT count(*) FROM deliveries WHERE partition_id = %s AND state = 'pending'

-- name: attachment
-- True if the detachment of a partition was interrupted; no row if it is not attached.
SELECT i.inhdetachpending
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = %s::regclass AND c.relname = %s

-- name: rows_of
-- The query for the rows of a partition in the archive, whose readers have no uuid type. An attempt of a batch becomes an attempt
-- of each delivery.
SELECT 'SELECT ' || string_agg(CASE WHEN attname = 'sequence' AND is_attempts
                                    THEN 'unnest(COALESCE(sequences, ARRAY[sequence])) AS sequence'
                                    WHEN atttypid = 'uuid'::regtype
                                    THEN quote_ident(attname) || '::text AS ' || quote_ident(attname)
                                    ELSE quote_ident(attname) END,
                               ', ' ORDER BY attnum) FILTER (WHERE NOT (attname = 'sequences' AND is_attempts))
       || ' FROM ' || attrelid::regclass
  FROM (SELECT attrelid, attname, atttypid, attnum, bool_or(attname = 'sequences') OVER () AS is_attempts
          FROM pg_attribute WHERE attrelid = %s::text::regclass AND attnum > 0 AND NOT attisdropped) AS columns
 GROUP BY attrelid

-- name: statement_timeout
-- For one transaction: many rows take long.
SELECT set_config('statement_timeout', %s, true)

-- name: ping
-- The server ends an idle session.
SELECT 1

-- name: end_reader
-- Ends the session that reads a partition for the archive: nothing else ends a statement whose rows nobody fetches.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'eventhub archive ' || %s

-- name: record_retired
-- `segments`: the segments of the deliveries that it held.
INSERT INTO retired_partitions (parent, name, rows, archive_path, reason, segments)
VALUES (%(parent)s, %(name)s, %(rows)s, %(archive)s, %(reason)s, %(segments)s::text::int8multirange)

-- name: tallies
-- For each table: retired partitions with rows, archived and not, with the number of rows; and the detached ones.
SELECT t.name AS "table", count(r.id) FILTER (WHERE r.archive_path IS NOT NULL) AS archived,
       COALESCE(sum(r.rows) FILTER (WHERE r.archive_path IS NOT NULL), 0)::bigint AS archived_rows,
       count(r.id) FILTER (WHERE r.archive_path IS NULL AND r.rows > 0) AS lost,
       COALESCE(sum(r.rows) FILTER (WHERE r.archive_path IS NULL), 0)::bigint AS lost_rows,
       (SELECT count(*) FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
         WHERE c.relkind = 'r' AND c.relname ~ ('^' || t.name || '_p?[0-9]+$')
           AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'deliveries'::regclass)
           AND (i.inhrelid IS NULL OR i.inhdetachpending)) AS waiting
  FROM unnest(ARRAY['deliveries', 'attempts', 'listeners']) WITH ORDINALITY AS t (name, position)
  LEFT JOIN retired_partitions r ON r.parent = t.name
 GROUP BY t.name, t.position
 ORDER BY t.position

-- name: last_lost
-- The last partitions that were dropped without being archived, and why.
SELECT name, rows, retired_at AS at, reason FROM retired_partitions
 WHERE archive_path IS NULL AND rows > 0
 ORDER BY id DESC
 LIMIT %s

-- name: manifests
SELECT archive_path FROM retired_partitions WHERE archive_path IS NOT NULL ORDER BY id
