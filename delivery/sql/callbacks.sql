-- Claims due deliveries, reads what posting them needs, and writes their results. All times are the database's.

-- name: settings
-- Every statement here must use an index; the statistics of a partition that was empty a moment ago suggest otherwise.
SELECT set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false),
       set_config('enable_hashjoin', 'off', false), set_config('enable_mergejoin', 'off', false),
       set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false)

-- name: scan_parallel
-- Skip scan over the endpoints with pending deliveries, one index look-up each: whether some may be posted now, and the
-- endpoint's failures, if any (circuits). An endpoint with batches waits until its oldest delivery has waited for `linger_s`, or
-- enough are due for a full batch. One whose circuit is open is probed once its pause is over, also if nothing is due.
WITH RECURSIVE hop AS (
    (SELECT endpoint_id, next_attempt_at AS due_at, 1 AS number FROM deliveries
      WHERE state = 'pending' AND NOT ordered AND endpoint_id > %(after)s
      ORDER BY endpoint_id, next_attempt_at LIMIT 1)
    UNION ALL
    SELECT next.endpoint_id, next.next_attempt_at, hop.number + 1
      FROM hop, LATERAL (
        SELECT endpoint_id, next_attempt_at FROM deliveries
         WHERE state = 'pending' AND NOT ordered AND endpoint_id > hop.endpoint_id
         ORDER BY endpoint_id, next_attempt_at LIMIT 1) AS next
     WHERE hop.number < %(endpoints_max)s
)
SELECT hop.endpoint_id AS id,
       e.enabled AND e.deleted_at IS NULL
       AND CASE WHEN b.state <> 'closed'
                THEN is_over(b.retry_at, greatest(b.pause_s, %(probe_s)s)) OR e.changed_at > b.recorded_at AND e.changed_at <= now()
                ELSE hop.due_at <= now() AND (e.batch_linger_ms = 0 OR hop.due_at <= now() - e.batch_linger_ms * interval '1 ms'
                     OR EXISTS (SELECT FROM deliveries d
                                 WHERE d.endpoint_id = hop.endpoint_id AND d.state = 'pending' AND NOT d.ordered
                                   AND d.next_attempt_at <= now()
                                OFFSET e.batch_events_max - 1 LIMIT 1)) END AS is_due,
       e.deleted_at IS NOT NULL AS is_deleted, b.failures, b.state <> 'closed' AS is_open,
       {callback_columns},
       CASE WHEN e.batch_linger_ms > 0 THEN extract(epoch FROM hop.due_at - now())::float8 + e.batch_linger_ms / 1000.0 END
       AS linger_s
  FROM hop LEFT JOIN endpoints e ON e.id = hop.endpoint_id
           LEFT JOIN zones z ON z.id = e.zone_id
           LEFT JOIN circuits b ON b.endpoint_id = hop.endpoint_id AND b.failures > 0
 ORDER BY hop.endpoint_id

-- name: scan_lanes
-- The same for endpoints with ordered deliveries, one look-up each, however many lanes they have: whether some lane may be taken.
-- A full batch is one of as many lanes, or of as many deliveries of the lane that has waited longest.
WITH RECURSIVE hop AS (
    (SELECT endpoint_id, stream_id, due_at, 1 AS number FROM lanes
      WHERE endpoint_id > %(after)s AND due_at IS NOT NULL
      ORDER BY endpoint_id, due_at LIMIT 1)
    UNION ALL
    SELECT next.endpoint_id, next.stream_id, next.due_at, hop.number + 1
      FROM hop, LATERAL (
        SELECT endpoint_id, stream_id, due_at FROM lanes
         WHERE endpoint_id > hop.endpoint_id AND due_at IS NOT NULL
         ORDER BY endpoint_id, due_at LIMIT 1) AS next
     WHERE hop.number < %(endpoints_max)s
)
SELECT hop.endpoint_id AS id,
       e.enabled AND e.deleted_at IS NULL
       AND CASE WHEN b.state <> 'closed'
                THEN is_over(b.retry_at, greatest(b.pause_s, %(probe_s)s)) OR e.changed_at > b.recorded_at AND e.changed_at <= now()
                ELSE hop.due_at <= now() AND (e.batch_linger_ms = 0 OR hop.due_at <= now() - e.batch_linger_ms * interval '1 ms'
                     OR EXISTS (SELECT FROM lanes l WHERE l.endpoint_id = hop.endpoint_id AND l.due_at <= now()
                                OFFSET e.batch_events_max - 1 LIMIT 1)
                     OR EXISTS (SELECT FROM deliveries d
                                 WHERE d.endpoint_id = hop.endpoint_id AND COALESCE(d.lane, d.stream_id) = hop.stream_id
                                   AND d.state = 'pending' AND d.ordered
                                OFFSET e.batch_events_max - 1 LIMIT 1)) END AS is_due,
       e.deleted_at IS NOT NULL AS is_deleted, b.failures, b.state <> 'closed' AS is_open,
       {callback_columns},
       CASE WHEN e.batch_linger_ms > 0 THEN extract(epoch FROM hop.due_at - now())::float8 + e.batch_linger_ms / 1000.0 END
       AS linger_s
  FROM hop LEFT JOIN endpoints e ON e.id = hop.endpoint_id
           LEFT JOIN zones z ON z.id = e.zone_id
           LEFT JOIN circuits b ON b.endpoint_id = hop.endpoint_id AND b.failures > 0
 ORDER BY hop.endpoint_id

-- name: claim_parallel
-- Claims the given number of due deliveries of each endpoint, skipping those that others are claiming. When a claim expires,
-- its delivery is due again. Claims nothing of an endpoint whose circuit is open, unless this worker probes it. Returns the
-- deliveries that differ only in their events together.
WITH due AS MATERIALIZED (
    SELECT found.* FROM (SELECT * FROM unnest(%(endpoints)s::bigint[], %(counts)s::bigint[]) AS u (endpoint_id, count)
                          WHERE u.endpoint_id = ANY (%(probes)s)
                             OR NOT EXISTS (SELECT FROM circuits b
                                             WHERE b.endpoint_id = u.endpoint_id AND b.state <> 'closed')) AS requested,
        LATERAL (SELECT partition_id, endpoint_id, segment_id, sequence FROM deliveries
                  WHERE endpoint_id = requested.endpoint_id AND state = 'pending' AND NOT ordered
                    AND next_attempt_at <= now()
                  ORDER BY next_attempt_at LIMIT requested.count
                    FOR UPDATE SKIP LOCKED) AS found
), part AS MATERIALIZED (
    SELECT partition_id, endpoint_id, segment_id, array_agg(sequence) AS sequences FROM due GROUP BY 1, 2, 3
), claimed AS (
    UPDATE deliveries AS d SET claim = %(token)s::uuid, next_attempt_at = now() + make_interval(secs => %(claim_s)s)
      FROM part p
     WHERE d.partition_id = p.partition_id AND d.endpoint_id = p.endpoint_id AND d.segment_id = p.segment_id
       AND d.sequence = ANY (p.sequences)
    RETURNING d.partition_id, d.endpoint_id, d.segment_id, d.sequence, d.stream_id, COALESCE(d.lane, d.stream_id) AS lane_number,
              d.registrations, d.attempts, d.uncounted_attempts, d.payload IS NOT NULL AS has_copy, d.created_at, d.gap_first, d.gap_reason, d.version_ids,
              d.message_number, d.forced, d.resent_at IS NOT NULL OR d.replay_id IS NOT NULL AS is_repeat
)
SELECT partition_id, endpoint_id, segment_id, stream_id, lane_number, registrations, attempts, uncounted_attempts, has_copy,
       (extract(epoch FROM min(created_at)) * 1000000)::bigint AS created_at_us, gap_first, gap_reason, version_ids, message_number,
       forced, is_repeat, (%(token)s::uuid)::text AS token, array_agg(sequence) AS sequences
  FROM claimed
 GROUP BY partition_id, endpoint_id, segment_id, stream_id, lane_number, registrations, attempts, uncounted_attempts, has_copy,
          gap_first, gap_reason, version_ids, message_number, forced, is_repeat

-- name: take_lanes
-- Takes the given number of due lanes of each endpoint, those that have waited longest, skipping those that others are taking
-- or marking. A taken lane is due again when its hold expires. Takes none of an endpoint whose
-- circuit is open, unless this worker probes it.
WITH due AS MATERIALIZED (
    SELECT found.* FROM (SELECT * FROM unnest(%(endpoints)s::bigint[], %(counts)s::bigint[]) AS u (endpoint_id, count)
                          WHERE u.endpoint_id = ANY (%(probes)s)
                             OR NOT EXISTS (SELECT FROM circuits b
                                             WHERE b.endpoint_id = u.endpoint_id AND b.state <> 'closed')) AS requested,
        LATERAL (SELECT endpoint_id, stream_id FROM lanes
                  WHERE endpoint_id = requested.endpoint_id AND due_at <= now() AND expires_at <= now()
                  ORDER BY due_at LIMIT requested.count
                    FOR UPDATE SKIP LOCKED) AS found
)
UPDATE lanes AS l
   SET token = %(token)s, touched = false, expires_at = now() + make_interval(secs => %(claim_s)s),
       due_at = now() + make_interval(secs => %(claim_s)s)
  FROM due
 WHERE l.endpoint_id = due.endpoint_id AND l.stream_id = due.stream_id
RETURNING l.endpoint_id, l.stream_id AS number

-- name: claim_lanes
-- Claims the oldest deliveries of lanes that were taken in a statement BEFORE this one: of each lane those before the first
-- that is not due, and none after an event whose deliveries are still being written (a row of fanouts). Each has a position
-- in its lane. Where a position is missing, the delivery was moved to another partition or dropped since the statement
-- started, and the deliveries after it must not be posted yet. An earlier claim of one of them does not count: holding a lane
-- means holding its deliveries.
WITH oldest AS (
    SELECT found.*, bool_and(found.due) OVER lane AS reached, row_number() OVER lane AS place
      FROM unnest(%(endpoints)s::bigint[], %(lanes)s::bigint[], %(counts)s::bigint[])
           AS requested (endpoint_id, number, count)
      JOIN lanes l ON l.endpoint_id = requested.endpoint_id AND l.stream_id = requested.number
                  AND l.token = %(token)s,
           LATERAL (SELECT partition_id, endpoint_id, segment_id, sequence, COALESCE(lane, stream_id) AS number,
                           is_due(next_attempt_at, NULL, pause_s)
                           AND NOT EXISTS (SELECT FROM fanouts f
                                            WHERE f.stream_id = d.stream_id AND f.sequence < d.sequence) AS due
                      FROM deliveries d
                     WHERE endpoint_id = requested.endpoint_id AND COALESCE(lane, stream_id) = requested.number
                       AND state = 'pending' AND ordered
                     ORDER BY sequence LIMIT requested.count) AS found
    WINDOW lane AS (PARTITION BY found.endpoint_id, found.number ORDER BY found.sequence)
)
UPDATE deliveries AS d SET claim = %(token)s, next_attempt_at = now() + make_interval(secs => %(claim_s)s)
  FROM oldest AS o
 WHERE o.reached
   AND d.partition_id = o.partition_id AND d.endpoint_id = o.endpoint_id AND d.segment_id = o.segment_id
   AND d.sequence = o.sequence AND d.state = 'pending'
RETURNING d.partition_id, d.endpoint_id, d.segment_id, d.sequence, d.stream_id, COALESCE(d.lane, d.stream_id) AS lane_number, d.registrations, d.attempts, d.uncounted_attempts,
          d.payload IS NOT NULL AS has_copy, (extract(epoch FROM d.created_at) * 1000000)::bigint AS created_at_us, d.gap_first, d.gap_reason, d.version_ids,
          d.message_number, d.forced, d.resent_at IS NOT NULL OR d.replay_id IS NOT NULL AS is_repeat,
          d.claim::text AS token, false AS probe, 0::float8 AS early_s, o.place

-- name: events
-- Sizes and stored bytes by segment and sequence, from the segment's current partition: one search of its index for each segment,
-- although statistics may suggest another plan for a partition that was empty a moment ago. If all are together larger than
-- `bytes_max`, only their sizes are read, and the payloads are null.
SELECT requested.segment_id, e.sequence, e.appended_at_us, e.size,
       CASE WHEN sum(e.size) OVER () <= %(bytes_max)s THEN e.payload END AS payload
  FROM (SELECT segment_id, array_agg(sequence) AS sequences
          FROM unnest(%(segments)s::bigint[], %(sequences)s::bigint[]) AS u (segment_id, sequence) GROUP BY 1) AS requested
 CROSS JOIN LATERAL (SELECT partition_id FROM segments WHERE id = requested.segment_id LIMIT 1) AS s
 CROSS JOIN LATERAL (
    SELECT sequence, (extract(epoch FROM appended_at) * 1000000)::bigint AS appended_at_us, payload, octet_length(payload) AS size
      FROM events
     WHERE partition_id = s.partition_id AND segment_id = requested.segment_id AND sequence = ANY (requested.sequences)
    OFFSET 0) AS e

-- name: copies
-- The same of deliveries that have a copy of their event.
SELECT d.segment_id, d.sequence, (extract(epoch FROM d.created_at) * 1000000)::bigint AS appended_at_us,
       octet_length(d.payload) AS size,
       CASE WHEN sum(octet_length(d.payload)) OVER () <= %(bytes_max)s THEN d.payload END AS payload
  FROM unnest(%(partitions)s::bigint[], %(endpoints)s::bigint[], %(segments)s::bigint[], %(sequences)s::bigint[])
       AS r (partition_id, endpoint_id, segment_id, sequence)
  JOIN deliveries d ON d.partition_id = r.partition_id AND d.endpoint_id = r.endpoint_id AND d.segment_id = r.segment_id
                   AND d.sequence = r.sequence
 WHERE d.payload IS NOT NULL

-- name: segments
SELECT g.id, g.uuid::text AS segment, s.name AS stream FROM segments g JOIN streams s ON s.id = g.stream_id WHERE g.id = ANY(%(segments)s)

-- name: annotations
-- The reports and variables of versions of registrations. A version that a delivery may need is not deleted.
SELECT id, registration_id AS registration, report::text AS report, variable FROM registration_versions
 WHERE id = ANY (%(versions)s) AND (report IS NOT NULL OR variable IS NOT NULL)

-- name: groups
-- The groups of clients: an event with an audience is sent only to a client that is in one of its groups at that time.
SELECT id, groups::text AS groups FROM clients WHERE id = ANY (%(clients)s) AND deleted_at IS NULL

-- name: retained_bytes
-- The delivery's own copy of its event, which it may have received after it was claimed; in any partition.
SELECT payload FROM deliveries
 WHERE endpoint_id = %(endpoint)s AND segment_id = %(segment)s AND sequence = %(sequence)s
   AND payload IS NOT NULL

-- name: removal_reason
-- Why an event was removed.
SELECT removal_reason FROM segments WHERE id = %(segment)s

-- name: write_results
-- Results of deliveries and their attempts, written only where the claim is still held. Without an outcome nothing was sent.
-- `delay_us`: the pause before the next attempt.
WITH result AS (
    SELECT r.*, (%(tokens)s::text[])[r.token_position]::uuid AS token
      FROM unnest(%(partitions)s::bigint[], %(endpoints)s::bigint[], %(segments)s::bigint[], %(sequences)s::bigint[], %(token_positions)s::bigint[], %(states)s::text[], %(delays_us)s::bigint[],
                  %(retry_after_s)s::bigint[], %(ages_us)s::bigint[], %(outcomes)s::text[],
                  %(statuses)s::bigint[], %(durations_ms)s::bigint[], %(urls)s::text[], %(requests)s::text[], %(responses)s::text[])
           AS r (partition_id, endpoint_id, segment_id, sequence, token_position, state, delay_us, retry_after_s, age_us,
                 outcome, status, duration_ms, url, request, response)
), written AS (
    UPDATE deliveries AS d
       SET state = r.state, attempts = d.attempts + CASE WHEN r.outcome IS NULL THEN 0 ELSE 1 END,
           retry_after_s = r.retry_after_s, pause_s = r.delay_us / 1000000.0, claim = NULL,
           next_attempt_at = now() + r.delay_us * interval '1 microsecond',
           finished_at = CASE WHEN r.state = 'pending' THEN NULL ELSE now() END,
           last_outcome = CASE WHEN r.outcome IS NULL THEN d.last_outcome ELSE NULLIF(r.outcome, 'delivered') END,
           last_status = CASE WHEN r.outcome IS NULL THEN d.last_status ELSE r.status END
      FROM result r
     WHERE d.partition_id = r.partition_id AND d.endpoint_id = r.endpoint_id AND d.segment_id = r.segment_id
       AND d.sequence = r.sequence AND d.claim = r.token AND d.state = 'pending'
    RETURNING d.attempts, r.*
), stored AS (
    INSERT INTO attempts (attempted_at, partition_id, endpoint_id, segment_id, sequence, number, outcome, status, duration_ms,
                          url, request, response)
    SELECT now() - age_us * interval '1 microsecond', partition_id, endpoint_id, segment_id, sequence, attempts,
           outcome, status, duration_ms, url, request, response
      FROM written WHERE outcome IS NOT NULL AND %(store_attempts)s
), lost AS (
    INSERT INTO endpoint_losses AS l (endpoint_id, kind, deliveries, first, last, since, reason)
    SELECT endpoint_id, 'dead_lettered', count(*), min(ARRAY[segment_id, sequence]), max(ARRAY[segment_id, sequence]), now(),
           COALESCE(max(outcome), '')
      FROM written WHERE state = 'dead_lettered'
     GROUP BY endpoint_id
     ORDER BY endpoint_id
        ON CONFLICT (endpoint_id, kind) DO UPDATE
       SET deliveries = l.deliveries + excluded.deliveries, first = least(l.first, excluded.first),
           last = greatest(l.last, excluded.last), since = COALESCE(l.since, excluded.since), reason = excluded.reason
)
SELECT count(*) AS results, count(*) FILTER (WHERE state = 'dead_lettered') AS dead_lettered FROM written

-- name: write_delivered
-- Results of deliveries that requests of several events delivered, written only where the claim is still held. Each part of a
-- request has the partition, endpoint, segment and claim in common; `ends`: the position in `sequences` of its last delivery. The
-- deliveries of a part that are in the same range of sequences (`span`) have one row of attempts together.
WITH part AS MATERIALIZED (
    SELECT p.*, p.token::uuid AS claim, lag(p.ending, 1, 0::bigint) OVER (ORDER BY place) + 1 AS beginning
      FROM unnest(%(partitions)s::bigint[], %(endpoints)s::bigint[], %(segments)s::bigint[], %(tokens)s::text[], %(ends)s::bigint[],
                  %(ages_us)s::bigint[], %(statuses)s::bigint[], %(durations_ms)s::bigint[], %(urls)s::text[],
                  %(requests)s::text[], %(responses)s::text[]) WITH ORDINALITY
           AS p (partition_id, endpoint_id, segment_id, token, ending, age_us, status, duration_ms, url, request, response, place)
), written AS (
    UPDATE deliveries AS d
       SET state = 'delivered', attempts = d.attempts + 1, retry_after_s = NULL, pause_s = 0, claim = NULL,
           next_attempt_at = now(), finished_at = now(), last_outcome = NULL, last_status = p.status
      FROM part p
     WHERE d.partition_id = p.partition_id AND d.endpoint_id = p.endpoint_id AND d.segment_id = p.segment_id
       AND d.sequence = ANY ((%(sequences)s::bigint[])[p.beginning:p.ending]) AND d.claim = p.claim AND d.state = 'pending'
    RETURNING p.place, d.sequence, d.attempts
), stored AS (
    INSERT INTO attempts (attempted_at, partition_id, endpoint_id, segment_id, sequence, number, outcome, status, duration_ms,
                          url, request, response, sequences)
    SELECT now() - p.age_us * interval '1 microsecond', p.partition_id, p.endpoint_id, p.segment_id, w.sequences[1], w.number,
           'delivered', p.status, p.duration_ms, p.url, p.request, p.response,
           CASE WHEN cardinality(w.sequences) > 1 THEN w.sequences END
      FROM (SELECT place, attempts AS number, array_agg(sequence ORDER BY sequence) AS sequences FROM written
             GROUP BY place, attempts, sequence / %(span)s) AS w JOIN part p USING (place)
     WHERE %(store_attempts)s
)
SELECT count(*) FROM written

-- name: give_back
-- Releases claims that were not attempted: due again at once.
UPDATE deliveries AS d SET claim = NULL, next_attempt_at = now()
  FROM unnest(%(partitions)s::bigint[], %(endpoints)s::bigint[], %(segments)s::bigint[], %(sequences)s::bigint[], %(tokens)s::text[])
       AS r (partition_id, endpoint_id, segment_id, sequence, token)
 WHERE d.partition_id = r.partition_id AND d.endpoint_id = r.endpoint_id AND d.segment_id = r.segment_id
   AND d.sequence = r.sequence AND d.claim = r.token::uuid AND d.state = 'pending'

-- name: leave_lanes
-- Leaves lanes, in their order, with the time at which the oldest delivery of each is due; deletes those without any, unless
-- they were touched since they were taken. Behind an event whose deliveries are still being written, a lane is tried again soon.
WITH held AS MATERIALIZED (
    SELECT l.endpoint_id, l.stream_id, l.touched
      FROM lanes l
      JOIN unnest(%(endpoints)s::bigint[], %(lanes)s::bigint[], %(tokens)s::text[]) AS r (endpoint_id, number, token)
        ON l.endpoint_id = r.endpoint_id AND l.stream_id = r.number AND l.token = r.token::uuid
     ORDER BY 1, 2 FOR UPDATE OF l
), oldest AS MATERIALIZED (
    SELECT h.endpoint_id, h.stream_id, h.touched,
           (SELECT CASE WHEN EXISTS (SELECT FROM fanouts f WHERE f.stream_id = d.stream_id AND f.sequence < d.sequence)
                        THEN greatest(d.next_attempt_at, now() + make_interval(secs => %(fanout_s)s))
                        WHEN d.claim IS NOT NULL THEN least(d.next_attempt_at, now())
                        ELSE d.next_attempt_at END
              FROM deliveries d
             WHERE d.endpoint_id = h.endpoint_id AND COALESCE(d.lane, d.stream_id) = h.stream_id
               AND d.state = 'pending' AND d.ordered
             ORDER BY d.sequence LIMIT 1) AS due_at
      FROM held h
), emptied AS (
    DELETE FROM lanes l USING oldest o
     WHERE o.due_at IS NULL AND NOT o.touched AND l.endpoint_id = o.endpoint_id AND l.stream_id = o.stream_id
), left_behind AS (
    UPDATE lanes l SET expires_at = 'epoch', due_at = COALESCE(o.due_at, now()), touched = true
      FROM oldest o
     WHERE (o.due_at IS NOT NULL OR o.touched) AND l.endpoint_id = o.endpoint_id AND l.stream_id = o.stream_id
    RETURNING l.due_at
)
SELECT count(*) FILTER (WHERE due_at <= now()) AS due FROM left_behind

-- name: cancel
-- Cancels pending deliveries of a deleted endpoint, except those being posted.
WITH doomed AS MATERIALIZED (
    SELECT partition_id, endpoint_id, segment_id, sequence FROM deliveries
     WHERE endpoint_id = %(endpoint)s AND state = 'pending' AND NOT ordered
       AND (claim IS NULL OR is_over(next_attempt_at, %(claim_s)s))
     LIMIT %(deliveries_max)s FOR UPDATE SKIP LOCKED
)
UPDATE deliveries AS d SET state = 'cancelled', claim = NULL, finished_at = now()
  FROM doomed
 WHERE d.partition_id = doomed.partition_id AND d.endpoint_id = doomed.endpoint_id AND d.segment_id = doomed.segment_id
   AND d.sequence = doomed.sequence

-- name: cancel_ordered
-- Cancels pending ordered deliveries of a deleted endpoint, except those being posted.
WITH doomed AS MATERIALIZED (
    SELECT partition_id, endpoint_id, segment_id, sequence FROM deliveries
     WHERE endpoint_id = %(endpoint)s AND state = 'pending' AND ordered
       AND (claim IS NULL OR is_over(next_attempt_at, %(claim_s)s))
     LIMIT %(deliveries_max)s FOR UPDATE SKIP LOCKED
)
UPDATE deliveries AS d SET state = 'cancelled', claim = NULL, finished_at = now()
  FROM doomed
 WHERE d.partition_id = doomed.partition_id AND d.endpoint_id = doomed.endpoint_id AND d.segment_id = doomed.segment_id
   AND d.sequence = doomed.sequence

-- name: cancel_lanes
-- Deletes the lanes of a deleted endpoint, once all of its deliveries are cancelled.
DELETE FROM lanes l
 WHERE endpoint_id = %(endpoint)s AND expires_at <= now()
   AND NOT EXISTS (SELECT FROM deliveries d WHERE d.endpoint_id = %(endpoint)s AND d.state = 'pending' AND d.ordered)

-- name: delete_unused_throttles
-- Of endpoints without limits, and of deleted ones.
DELETE FROM endpoint_throttles t USING endpoints e
 WHERE e.id = t.endpoint_id AND (e.deleted_at IS NOT NULL
                                 OR e.rate_limit IS NULL AND e.concurrency IS NULL AND e.allowed_rate IS NULL)

-- name: delete_circuits_of_deleted_endpoints
DELETE FROM circuits c USING endpoints e WHERE e.id = c.endpoint_id AND e.deleted_at IS NOT NULL

-- name: delete_verifications_of_deleted_endpoints
DELETE FROM endpoint_verifications v USING endpoints e WHERE e.id = v.endpoint_id AND e.deleted_at IS NOT NULL

-- name: delete_idle_lanes
-- Lanes without deliveries that release 0.1 left.
DELETE FROM lanes WHERE expires_at < now() - make_interval(secs => %(idle_s)s)
   AND (due_at IS NULL OR due_at < now() - make_interval(secs => %(idle_s)s))
   AND NOT EXISTS (SELECT FROM deliveries d
                    WHERE d.endpoint_id = lanes.endpoint_id AND COALESCE(d.lane, d.stream_id) = lanes.stream_id
                      AND d.state = 'pending' AND d.ordered)
