-- The circuit breakers of endpoints: the state chart of registrations/endpoints/circuit.py, for all workers together. An endpoint
-- without failures has no row, or one with `failures` = 0, which is closed.

-- name: take_probes
-- open -> half_open (pause_over, endpoint_changed), half_open -> half_open (probe_lost): the probe belongs to this worker until
-- its outcome is written, or for `probe_s`.
WITH over AS (
    SELECT c.endpoint_id, e.changed_at > c.recorded_at AND e.changed_at <= now() AS changed
      FROM circuits c JOIN endpoints e ON e.id = c.endpoint_id
     WHERE c.endpoint_id = ANY (%(endpoints)s) AND c.state <> 'closed'
       AND (is_over(c.retry_at, greatest(c.pause_s, %(probe_s)s)) OR e.changed_at > c.recorded_at AND e.changed_at <= now())
     ORDER BY c.endpoint_id
       FOR UPDATE OF c SKIP LOCKED
)
UPDATE circuits c SET state = 'half_open', retry_at = now() + make_interval(secs => %(probe_s)s), recorded_at = now()
  FROM over
 WHERE c.endpoint_id = over.endpoint_id
RETURNING c.endpoint_id, over.changed

-- name: advance_parallel
-- Where no parallel delivery of a probed endpoint is due, the next one becomes due for the probe; its attempt does not count.
-- Returns those with the seconds for which they would have waited.
WITH next AS MATERIALIZED (
    SELECT found.* FROM unnest(%(endpoints)s::bigint[]) AS probed (endpoint_id),
        LATERAL (SELECT partition_id, endpoint_id, segment_id, sequence, next_attempt_at FROM deliveries
                  WHERE endpoint_id = probed.endpoint_id AND state = 'pending' AND NOT ordered
                    AND next_attempt_at > now() AND claim IS NULL AND retry_after_s IS NULL
                  ORDER BY next_attempt_at LIMIT 1
                    FOR UPDATE SKIP LOCKED) AS found
     WHERE NOT EXISTS (SELECT FROM deliveries
                        WHERE endpoint_id = probed.endpoint_id AND state = 'pending' AND NOT ordered
                          AND next_attempt_at <= now())
)
UPDATE deliveries d SET next_attempt_at = now(), uncounted_attempts = d.uncounted_attempts + 1
  FROM next n
 WHERE d.partition_id = n.partition_id AND d.endpoint_id = n.endpoint_id AND d.segment_id = n.segment_id
   AND d.sequence = n.sequence
RETURNING d.endpoint_id, d.segment_id, d.sequence, extract(epoch FROM n.next_attempt_at - now())::float8 AS early_s

-- name: advance_ordered
-- The same of lanes: the first delivery of the lane that is due next.
WITH next AS MATERIALIZED (
    SELECT found.* FROM unnest(%(endpoints)s::bigint[]) AS probed (endpoint_id),
        LATERAL (SELECT endpoint_id, stream_id AS number FROM lanes
                  WHERE endpoint_id = probed.endpoint_id AND due_at > now() AND expires_at <= now()
                  ORDER BY due_at LIMIT 1
                    FOR UPDATE SKIP LOCKED) AS found
     WHERE NOT EXISTS (SELECT FROM lanes
                        WHERE endpoint_id = probed.endpoint_id AND due_at <= now() AND expires_at <= now())
), heads AS MATERIALIZED (
    SELECT d.* FROM next n, LATERAL (
        SELECT partition_id, endpoint_id, segment_id, sequence, next_attempt_at, claim, retry_after_s, n.number
          FROM deliveries
         WHERE endpoint_id = n.endpoint_id AND COALESCE(lane, stream_id) = n.number AND state = 'pending' AND ordered
         ORDER BY sequence LIMIT 1) AS d
     WHERE d.next_attempt_at > now() AND d.claim IS NULL AND d.retry_after_s IS NULL
), marked AS (
    UPDATE lanes l SET due_at = now(), touched = true FROM heads h
     WHERE l.endpoint_id = h.endpoint_id AND l.stream_id = h.number
)
UPDATE deliveries d SET next_attempt_at = now(), uncounted_attempts = d.uncounted_attempts + 1
  FROM heads h
 WHERE d.partition_id = h.partition_id AND d.endpoint_id = h.endpoint_id AND d.segment_id = h.segment_id
   AND d.sequence = h.sequence AND d.state = 'pending' AND d.claim IS NULL
RETURNING d.endpoint_id, d.segment_id, d.sequence, extract(epoch FROM h.next_attempt_at - now())::float8 AS early_s

-- name: return_probes
-- half_open -> open (probe_returned): the request was not made, or was inconclusive; any worker may probe at once, or after a
-- pause.
WITH probing AS (
    SELECT endpoint_id FROM circuits WHERE endpoint_id = ANY (%(endpoints)s) AND state = 'half_open'
     ORDER BY endpoint_id FOR UPDATE
)
UPDATE circuits c SET state = 'open', retry_at = now() + make_interval(secs => %(pause_s)s)
  FROM probing p WHERE c.endpoint_id = p.endpoint_id

-- name: close
-- Any state -> closed (success). The fields of the failure stay for its announcement. Returns those that were not closed.
WITH found AS (
    SELECT endpoint_id, state FROM circuits WHERE endpoint_id = ANY (%(endpoints)s) AND failures > 0
     ORDER BY endpoint_id FOR UPDATE
), closed AS (
    UPDATE circuits c SET state = 'closed', failures = 0, recorded_at = now()
      FROM found f WHERE c.endpoint_id = f.endpoint_id
)
SELECT endpoint_id FROM found WHERE state <> 'closed' ORDER BY endpoint_id

-- name: write_failures
-- closed -> closed (failure), closed -> open (last_failure, once there are `failures_min` in a row), half_open -> open
-- (probe_failed): the pause doubles. Other failures are of requests that were under way. The pause is at least the Retry-After.
INSERT INTO circuits AS c (endpoint_id, state, failures, failing_since, failed_at, opened_at, openings, pause_s, retry_at,
                           outcome, status, segment_id, sequence)
SELECT n.endpoint_id, CASE WHEN f.opens THEN 'open' ELSE 'closed' END, n.failures, now(), now(),
       CASE WHEN f.opens THEN now() END, CASE WHEN f.opens THEN 1 ELSE 0 END, greatest(%(pause_s_base)s, n.retry_after_s),
       now() + make_interval(secs => greatest(%(pause_s_base)s * (0.5 + random() / 2), n.retry_after_s)),
       n.outcome, n.status, n.segment_id, n.sequence
  FROM unnest(%(endpoints)s::bigint[], %(failures)s::bigint[], %(retry_after_s)s::bigint[], %(outcomes)s::text[],
              %(statuses)s::bigint[], %(segments)s::bigint[], %(sequences)s::bigint[])
       AS n (endpoint_id, failures, retry_after_s, outcome, status, segment_id, sequence),
       LATERAL (SELECT n.failures >= %(failures_min)s AS opens) AS f
 ORDER BY n.endpoint_id
    ON CONFLICT (endpoint_id) DO UPDATE
   SET failures = least(c.failures + excluded.failures, 1000000),
       failing_since = CASE WHEN c.failures = 0 THEN now() ELSE c.failing_since END,
       failed_at = now(),
       -- of an open circuit the probe's start counts: an endpoint that was changed during the probe is called at once
       recorded_at = CASE WHEN c.state = 'closed' THEN now() ELSE c.recorded_at END,
       outcome = excluded.outcome, status = excluded.status, segment_id = excluded.segment_id, sequence = excluded.sequence,
       state = CASE WHEN c.state = 'half_open' AND c.endpoint_id = ANY (%(probed)s) THEN 'open'
                    WHEN c.state = 'closed' AND c.failures + excluded.failures >= %(failures_min)s THEN 'open'
                    ELSE c.state END,
       opened_at = CASE WHEN c.state = 'closed' AND c.failures + excluded.failures >= %(failures_min)s THEN now()
                        ELSE c.opened_at END,
       openings = c.openings + CASE WHEN c.state = 'closed' AND c.failures + excluded.failures >= %(failures_min)s THEN 1
                                    ELSE 0 END,
       pause_s = CASE WHEN c.state = 'half_open' AND c.endpoint_id = ANY (%(probed)s)
                      THEN greatest(least(c.pause_s * 2, %(pause_s_max)s), excluded.pause_s)
                      WHEN c.state = 'closed' THEN excluded.pause_s
                      ELSE c.pause_s END,
       retry_at = CASE WHEN c.state = 'half_open' AND c.endpoint_id = ANY (%(probed)s)
                       THEN now() + make_interval(secs => greatest(least(c.pause_s * 2, %(pause_s_max)s) * (0.5 + random() / 2),
                                                                   excluded.pause_s))
                       WHEN c.state = 'closed' THEN excluded.retry_at
                       ELSE c.retry_at END

-- name: hasten
-- Deliveries that failed while the circuit of their endpoint was open become due at once, except those with a Retry-After. Of
-- parallel ones a bounded number, the next to be due first; of ordered ones the oldest of each lane, for a bounded number of
-- lanes. The others keep their schedule.
WITH opened AS MATERIALIZED (
    SELECT opened_at FROM circuits WHERE endpoint_id = %(endpoint)s
), waiting AS MATERIALIZED (
    SELECT endpoint_id, stream_id AS number FROM lanes
     WHERE endpoint_id = %(endpoint)s AND due_at > now() AND expires_at <= now()
     ORDER BY due_at LIMIT %(lanes_max)s FOR UPDATE SKIP LOCKED
), heads AS MATERIALIZED (
    SELECT d.* FROM waiting w, LATERAL (
        SELECT partition_id, endpoint_id, segment_id, sequence, next_attempt_at, pause_s, claim, retry_after_s, w.number
          FROM deliveries
         WHERE endpoint_id = w.endpoint_id AND COALESCE(lane, stream_id) = w.number AND state = 'pending' AND ordered
         ORDER BY sequence LIMIT 1) AS d
), postponed AS MATERIALIZED (
    (SELECT d.partition_id, d.endpoint_id, d.segment_id, d.sequence FROM deliveries d, opened o
      WHERE d.endpoint_id = %(endpoint)s AND d.state = 'pending' AND NOT d.ordered AND d.next_attempt_at > now()
        AND d.claim IS NULL AND d.retry_after_s IS NULL
        AND d.next_attempt_at - make_interval(secs => d.pause_s) > o.opened_at
      ORDER BY d.next_attempt_at LIMIT %(deliveries_max)s)
    UNION ALL
    SELECT h.partition_id, h.endpoint_id, h.segment_id, h.sequence FROM heads h, opened o
     WHERE h.claim IS NULL AND h.retry_after_s IS NULL AND h.next_attempt_at > now()
       AND h.next_attempt_at - make_interval(secs => h.pause_s) > o.opened_at
), marked AS (
    UPDATE lanes l SET due_at = now(), touched = true
      FROM heads h JOIN postponed p USING (partition_id, endpoint_id, segment_id, sequence)
     WHERE l.endpoint_id = h.endpoint_id AND l.stream_id = h.number
)
UPDATE deliveries d SET next_attempt_at = now()
  FROM postponed p
 WHERE d.partition_id = p.partition_id AND d.endpoint_id = p.endpoint_id AND d.segment_id = p.segment_id
   AND d.sequence = p.sequence AND d.state = 'pending' AND d.claim IS NULL

-- name: exhausted_endpoints
-- The next endpoints that have failed for as long as their schedule takes, and how long that is: their circuit has withheld
-- deliveries for that time. Time counts from the last change of the endpoint. A schedule shorter than the longest pause of a circuit counts
-- as that long, so that an outage of seconds ends no delivery that was never attempted.
SELECT c.endpoint_id, s.total_s
  FROM circuits c
  JOIN endpoints e ON e.id = c.endpoint_id,
       LATERAL (SELECT greatest(%(least_s)s, CASE WHEN e.retry_schedule IS NULL THEN %(total_s)s
                       ELSE COALESCE((SELECT sum(pause) FROM unnest(e.retry_schedule) AS pause), 0) END)::bigint AS total_s) AS s
 WHERE c.endpoint_id > %(after)s AND c.state <> 'closed' AND e.enabled AND e.deleted_at IS NULL
   AND c.failed_at - greatest(c.failing_since, e.changed_at) >= make_interval(secs => s.total_s)
 ORDER BY c.endpoint_id
 LIMIT %(endpoints_max)s

-- name: dead_letter_withheld
-- Dead-letters some of an endpoint's deliveries that are older than its schedule and wait for nothing but the circuit, the oldest
-- first. Parallel ones between two attempts of their own keep their schedule. None if the endpoint has recovered or was changed
-- meanwhile. The cause of those that were never attempted is `withheld`.
WITH failing AS MATERIALIZED (
    SELECT c.endpoint_id FROM circuits c JOIN endpoints e ON e.id = c.endpoint_id
     WHERE c.endpoint_id = %(endpoint)s AND c.state <> 'closed' AND e.enabled AND e.deleted_at IS NULL
       AND c.failed_at - greatest(c.failing_since, e.changed_at) >= make_interval(secs => %(total_s)s)
       FOR SHARE OF c
), parallel AS MATERIALIZED (
    SELECT partition_id, endpoint_id, segment_id, sequence FROM deliveries
     WHERE endpoint_id = %(endpoint)s AND state = 'pending' AND NOT ordered AND next_attempt_at <= now()
       AND EXISTS (SELECT FROM failing)
       AND COALESCE(resent_at, created_at) < now() - make_interval(secs => %(total_s)s)
     ORDER BY next_attempt_at LIMIT %(deliveries_max)s FOR UPDATE SKIP LOCKED
), ordered AS MATERIALIZED (
    SELECT partition_id, endpoint_id, segment_id, sequence FROM deliveries
     WHERE endpoint_id = %(endpoint)s AND state = 'pending' AND ordered
       AND COALESCE(resent_at, created_at) < now() - make_interval(secs => %(total_s)s)
       AND (claim IS NULL OR is_over(next_attempt_at, %(claim_s)s)) AND EXISTS (SELECT FROM failing)
     ORDER BY endpoint_id, COALESCE(lane, stream_id), sequence LIMIT %(deliveries_max)s FOR UPDATE SKIP LOCKED
), dead AS (
    UPDATE deliveries d
       SET state = 'dead_lettered', claim = NULL, finished_at = now(), last_outcome = COALESCE(d.last_outcome, 'withheld')
      FROM (SELECT * FROM parallel UNION ALL SELECT * FROM ordered) AS w
     WHERE d.partition_id = w.partition_id AND d.endpoint_id = w.endpoint_id AND d.segment_id = w.segment_id
       AND d.sequence = w.sequence
    RETURNING d.endpoint_id, d.segment_id, d.sequence
), lost AS (
    INSERT INTO endpoint_losses AS l (endpoint_id, kind, deliveries, first, last, since, reason)
    SELECT d.endpoint_id, 'dead_lettered', count(*), min(ARRAY[d.segment_id, d.sequence]), max(ARRAY[d.segment_id, d.sequence]),
           now(), max(c.outcome)
      FROM dead d JOIN circuits c ON c.endpoint_id = d.endpoint_id
     GROUP BY d.endpoint_id
        ON CONFLICT (endpoint_id, kind) DO UPDATE
       SET deliveries = l.deliveries + excluded.deliveries, first = least(l.first, excluded.first),
           last = greatest(l.last, excluded.last), since = COALESCE(l.since, excluded.since), reason = excluded.reason
)
SELECT count(*) FROM dead

-- name: take_notices
-- What to announce of circuits now: that they opened or closed since the last announcement, at most once in an interval; that
-- endpoints have failed for a further share of the time after which they are disabled, and that those accepted a delivery. Those
-- announced longest ago come first, so that each gets its turn.
WITH progress AS (
    SELECT c.endpoint_id, e.client_id, e.zone_id, greatest(c.failing_since, e.changed_at) AS since, f.after_s,
           CASE WHEN c.failures = 0 OR f.after_s = 0 THEN 0
                ELSE 100 * extract(epoch FROM c.failed_at - greatest(c.failing_since, e.changed_at)) / f.after_s END AS percent
      FROM circuits c JOIN endpoints e ON e.id = c.endpoint_id,
           LATERAL (SELECT COALESCE(e.disable_after_s, %(disable_after_s)s) AS after_s) AS f
     WHERE e.deleted_at IS NULL AND (e.enabled OR c.failures = 0)
), due AS (
    SELECT p.*, c.state, c.failures, c.failing_since, c.openings, c.outcome, c.status, c.segment_id, c.sequence, c.retry_at,
           c.warned_percent AS warned_before,
           COALESCE((SELECT max(w) FROM unnest(%(percents)s::integer[]) AS w WHERE w <= p.percent), 0) AS warned,
           (c.openings > 0 OR c.announced_open <> (c.state <> 'closed'))
           AND c.announced_at <= now() - make_interval(secs => %(interval_s)s) AS has_switched, c.announced_at
      FROM progress p JOIN circuits c USING (endpoint_id)
), taken AS (
    UPDATE circuits c
       SET warned_percent = d.warned,
           openings = CASE WHEN d.has_switched THEN c.openings - d.openings ELSE c.openings END,
           announced_open = CASE WHEN d.has_switched THEN d.state <> 'closed' ELSE c.announced_open END,
           announced_at = CASE WHEN d.has_switched THEN now() ELSE c.announced_at END
      FROM (SELECT * FROM due WHERE has_switched OR warned <> warned_before
             ORDER BY announced_at, endpoint_id LIMIT %(notices_max)s) AS d
     WHERE c.endpoint_id = d.endpoint_id
    RETURNING d.*
)
SELECT z.name AS zone, c.name AS client, t.endpoint_id AS endpoint, t.state, t.has_switched, t.openings, t.failures,
       t.warned, t.warned_before, t.outcome, t.status, (extract(epoch FROM t.failing_since) * 1000000)::bigint AS since_us,
       (extract(epoch FROM t.retry_at) * 1000000)::bigint AS retry_at_us,
       (extract(epoch FROM t.since) * 1000000)::bigint + t.after_s * 1000000::bigint AS disables_at_us,
       s.name AS stream, g.uuid::text AS segment, t.sequence
  FROM taken t
  JOIN zones z ON z.id = t.zone_id
  JOIN clients c ON c.id = t.client_id
  LEFT JOIN segments g ON g.id = t.segment_id
  LEFT JOIN streams s ON s.id = g.stream_id
 ORDER BY z.name, t.endpoint_id

-- name: endpoints_to_disable
-- Enabled endpoints that have failed without a success for as long as they may; locked, so that the one given still does.
SELECT c.endpoint_id
  FROM circuits c JOIN endpoints e ON e.id = c.endpoint_id,
       LATERAL (SELECT COALESCE(e.disable_after_s, %(disable_after_s)s) AS after_s) AS f
 WHERE c.failures > 0 AND e.enabled AND e.deleted_at IS NULL AND f.after_s > 0
   AND c.failed_at - greatest(c.failing_since, e.changed_at) >= make_interval(secs => f.after_s)
   AND (%(endpoint)s::bigint IS NULL OR c.endpoint_id = %(endpoint)s)
 ORDER BY c.endpoint_id
 LIMIT %(endpoints_max)s
   FOR UPDATE OF c

-- name: forget_circuits
-- Deletes closed circuits without failures of which nothing is left to announce.
DELETE FROM circuits
 WHERE failures = 0 AND openings = 0 AND NOT announced_open AND warned_percent = 0
   AND announced_at <= now() - make_interval(secs => %(interval_s)s)
