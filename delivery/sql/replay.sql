-- Replay runs: the deliveries that their steps write, and their progress. All times are the database's.

-- name: lead
-- One process at a time executes runs; the session of a killed one ends.
SELECT pg_try_advisory_lock(hashtext('eventhub replay'))

-- name: stop_leading
SELECT pg_advisory_unlock(hashtext('eventhub replay'))

-- name: now
-- The time by which deliveries end, in microseconds.
SELECT (extract(epoch FROM now()) * 1000000)::bigint

-- name: running
-- The running runs, and whether the rate of each allows a step now.
SELECT id, is_over(paced_until, %(pace_s)s) AS is_due FROM replay_runs WHERE state = 'running' ORDER BY id

-- name: run
-- A run with what its steps need.
SELECT r.id, r.zone_id, z.name AS zone, c.name AS client, ARRAY(SELECT jsonb_array_elements_text(c.groups)) AS groups,
       r.endpoint_id, e.enabled AS endpoint_enabled, e.deleted_at IS NOT NULL AS endpoint_deleted, r.source,
       r.params::text AS params_json, r.version_id, r.position::text AS position_json, r.steps, r.rate, r.deliveries_max, r.force,
       r.new_id, r.written, r.state, r.waits_for
  FROM replay_runs r
  JOIN zones z ON z.id = r.zone_id
  JOIN clients c ON c.id = r.client_id
  JOIN endpoints e ON e.id = r.endpoint_id
 WHERE r.id = %(id)s

-- name: pending
-- The endpoint's pending deliveries, up to a number of each kind.
SELECT (SELECT count(*) FROM (SELECT FROM deliveries WHERE endpoint_id = %(endpoint_id)s AND state = 'pending' AND NOT ordered
                               LIMIT %(rows_max)s) AS parallel)
       + (SELECT count(*) FROM (SELECT FROM deliveries WHERE endpoint_id = %(endpoint_id)s AND state = 'pending' AND ordered
                                 LIMIT %(rows_max)s) AS ordered) AS deliveries

-- name: forwarded
-- The last event of a stream that a run may write deliveries of: forwarders write those of later ones. A stream without a
-- position that a registration with an endpoint names gets one soon.
SELECT LEAST(COALESCE(f.sequence,
                      CASE WHEN EXISTS (SELECT FROM registration_versions v
                                         WHERE v.streams @> ARRAY[s.id] AND v.endpoint_id IS NOT NULL) THEN 0 END,
                      9223372036854775807),
             COALESCE((SELECT min(x.sequence) - 1 FROM fanouts x WHERE x.stream_id = s.id), 9223372036854775807))::bigint AS sequence
  FROM streams s LEFT JOIN forwarding f ON f.stream_id = s.id
 WHERE s.id = %(stream_id)s

-- name: existing
-- The deliveries of a range of events to an endpoint, in whichever partition they are.
SELECT d.partition_id, d.sequence, d.state, d.gap_first IS NOT NULL AS is_notice
  FROM segments s,
       (SELECT g.id FROM event_partitions g
          JOIN pg_class c ON c.relname = 'deliveries_p' || g.id
          JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = 'deliveries'::regclass AND NOT i.inhdetachpending) AS attached,
       LATERAL (SELECT partition_id, sequence, state, gap_first FROM deliveries
                 WHERE partition_id = attached.id AND endpoint_id = %(endpoint_id)s AND segment_id = s.id
                   AND sequence BETWEEN %(first)s AND %(last)s
                OFFSET 0) AS d
 WHERE s.uuid = %(segment)s

-- name: lock_run
-- Locks a run for a step, unless it made another step, or was paused or cancelled, since it was read.
SELECT id FROM replay_runs WHERE id = %(id)s AND state = 'running' AND steps = %(steps)s FOR UPDATE

-- name: insert
-- Deliveries of events that the endpoint has none of. An event that has left the database is copied; then `created_at` is the
-- time of its append, which the body shows. Missing `lanes` are null.
WITH written AS (
    INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id, zone_id, ordered, lane, registrations, version_ids,
                            payload, created_at, resent_at, forced, replay_id)
    SELECT CASE WHEN EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                              WHERE i.inhparent = 'deliveries'::regclass AND NOT i.inhdetachpending
                                AND c.relname = 'deliveries_p' || s.partition_id)
                THEN s.partition_id ELSE l.current_partition END,
           e.id, s.id, v.sequence, s.stream_id, e.zone_id, e.ordered, v.lane, %(registrations)s::bigint[], %(version_ids)s::bigint[],
           CASE WHEN s.tier <> 'live' THEN v.payload END,
           CASE WHEN s.tier <> 'live' THEN to_timestamp(v.appended_at_us / 1000000.0) ELSE now() END, now(), %(force)s, %(id)s
      FROM segments s, log_state l, endpoints e,
           unnest(%(sequences)s::bigint[], %(payloads)s::bytea[], %(appended_at_us)s::bigint[], %(lanes)s::bigint[])
               AS v (sequence, payload, appended_at_us, lane)
     WHERE s.uuid = %(segment)s AND e.id = %(endpoint_id)s
        ON CONFLICT DO NOTHING
    RETURNING endpoint_id, stream_id, lane, ordered
), marked AS (
    {mark_again}
)
SELECT count(*) AS deliveries FROM written

-- name: resend
-- Makes deliveries pending again that have ended. A gap notice becomes the delivery of the event whose place it took.
WITH written AS (
    UPDATE deliveries d
       SET state = 'pending', claim = NULL, next_attempt_at = now(), retry_after_s = NULL, finished_at = NULL, resent_at = now(),
           forced = %(force)s, ordered = e.ordered, lane = CASE WHEN e.order_by <> '' THEN d.lane END, uncounted_attempts = d.attempts, gap_first = NULL, gap_reason = NULL,
           message_number = CASE WHEN %(new_id)s THEN COALESCE(d.message_number, 1) + 1 ELSE d.message_number END
      FROM endpoints e, unnest(%(partitions)s::bigint[], %(segments)s::bigint[], %(sequences)s::bigint[])
                            AS v (partition_id, segment_id, sequence)
     WHERE e.id = %(endpoint_id)s
       AND d.partition_id = v.partition_id AND d.endpoint_id = e.id AND d.segment_id = v.segment_id AND d.sequence = v.sequence
       AND d.state <> 'pending'
    RETURNING d.endpoint_id, d.stream_id, d.lane, d.ordered
), marked AS (
    {mark_again}
)
SELECT count(*) AS deliveries FROM written

-- name: order
-- The stream of a segment and the key by which the endpoint is ordered; no row if it is not ordered by key.
SELECT s.stream_id, e.order_by FROM segments s, endpoints e
 WHERE s.uuid = %(segment)s AND e.id = %(endpoint_id)s AND e.ordered AND e.order_by <> ''

-- name: segment_id
SELECT id FROM segments WHERE uuid = %(segment)s

-- name: segment_at
-- The segment of an event that is still readable.
SELECT uuid::text FROM segments
 WHERE stream_id = %(stream_id)s AND first <= %(sequence)s AND tier <> 'dropped'
 ORDER BY first DESC, id DESC LIMIT 1

-- name: failed
-- The next deliveries of an endpoint that have ended in some states, in the order of their segments and sequences.
-- `is_missing`: the event is no longer stored.
SELECT found.*
  FROM (SELECT g.id FROM event_partitions g
          JOIN pg_class c ON c.relname = 'deliveries_p' || g.id
          JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = 'deliveries'::regclass AND NOT i.inhdetachpending) AS attached
 CROSS JOIN unnest(%(states)s::text[]) AS ended (state)
 CROSS JOIN LATERAL (
    SELECT d.partition_id, d.segment_id, d.sequence, g.uuid::text AS segment, t.name AS stream,
           g.tier = 'dropped' AND d.payload IS NULL AND d.gap_first IS NULL AS is_missing
      FROM deliveries d
      JOIN segments g ON g.id = d.segment_id
      JOIN streams t ON t.id = d.stream_id
     WHERE d.zone_id = %(zone_id)s AND d.state = ended.state AND d.partition_id = attached.id
       AND d.endpoint_id = %(endpoint_id)s AND (d.segment_id, d.sequence) > (%(segment_id)s, %(sequence)s)
       AND d.finished_at >= to_timestamp(%(since_us)s / 1000000.0) AND d.finished_at <= to_timestamp(%(until_us)s / 1000000.0)
       AND (%(outcome)s::text IS NULL OR d.last_outcome = %(outcome)s)
       AND (%(status)s::bigint IS NULL OR d.last_status = %(status)s)
       AND (%(stream_ids)s::bigint[] IS NULL OR d.stream_id = ANY (%(stream_ids)s))
     ORDER BY d.segment_id, d.sequence
     LIMIT %(rows_max)s) AS found
 ORDER BY found.segment_id, found.sequence
 LIMIT %(rows_max)s

-- name: advance
-- Records a step. `pace_s`: how long the rate allows no other step.
UPDATE replay_runs
   SET position = %(position)s, steps = steps + 1, examined = examined + %(examined)s, matched = matched + %(matched)s,
       written = written + %(written)s, skipped = skipped + %(skipped)s, missing = missing + %(missing)s, waits_for = '',
       paced_until = GREATEST(CASE WHEN is_over(paced_until, %(pace_s_max)s) THEN now() ELSE paced_until END, now())
                     + make_interval(secs => %(pace_s)s),
       state = CASE WHEN %(ended)s THEN 'completed' ELSE state END, ended_at = CASE WHEN %(ended)s THEN now() END, updated_at = now()
 WHERE id = %(id)s AND state = 'running'
RETURNING examined, matched, written, skipped, missing

-- name: wait
-- Records why a run makes no progress.
UPDATE replay_runs SET waits_for = %(waits_for)s, updated_at = now()
 WHERE id = %(id)s AND state = 'running' AND waits_for <> %(waits_for)s

-- name: fail
UPDATE replay_runs SET state = 'failed', reason = %(reason)s, detail = %(detail)s, ended_at = now(), updated_at = now(), waits_for = ''
 WHERE id = %(id)s AND state = 'running'

-- name: forget
DELETE FROM replay_runs WHERE ended_at < now() - make_interval(days => %(retained_days)s)
