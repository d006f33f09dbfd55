-- Backoffs: when endpoints that fail as a whole may be called again, by all workers together.

-- name: take_probes
-- Takes the probes of endpoints whose pause is over or that were changed since. The probe belongs to this worker until its
-- outcome is written, or for `probe_s`.
WITH over AS (
    SELECT b.endpoint_id FROM backoffs b JOIN endpoints e ON e.id = b.endpoint_id
     WHERE b.endpoint_id = ANY (%(endpoints)s) AND b.pause_s > 0
       AND (is_over(b.paused_until, greatest(b.pause_s, %(probe_s)s)) OR e.changed_at > b.recorded_at AND e.changed_at <= now())
     ORDER BY b.endpoint_id
       FOR UPDATE OF b SKIP LOCKED
)
UPDATE backoffs b SET probing = true, paused_until = now() + make_interval(secs => %(probe_s)s), recorded_at = now()
  FROM over
 WHERE b.endpoint_id = over.endpoint_id
RETURNING b.endpoint_id

-- name: return_probes
-- The request was not made, or was inconclusive: any worker may probe at once.
WITH probing AS (
    SELECT endpoint_id FROM backoffs WHERE endpoint_id = ANY (%(endpoints)s) AND probing
     ORDER BY endpoint_id FOR UPDATE
)
UPDATE backoffs b SET probing = false, paused_until = now() FROM probing p WHERE b.endpoint_id = p.endpoint_id

-- name: delete_backoffs
-- The endpoints accepted a delivery: the backoff is over.
WITH found AS (
    SELECT endpoint_id FROM backoffs WHERE endpoint_id = ANY (%(endpoints)s) ORDER BY endpoint_id FOR UPDATE
)
DELETE FROM backoffs b USING found WHERE b.endpoint_id = found.endpoint_id

-- name: write_failures
-- Adds failures. After `failures_min` in a row the endpoint backs off, and each failed probe doubles the pause; other failures
-- meanwhile are of requests that were under way. The pause is at least the Retry-After.
INSERT INTO backoffs AS b (endpoint_id, failures, failing_since, single_delivery, segment_id, sequence, retry_after_s, pause_s, paused_until)
SELECT n.endpoint_id, n.failures, now(), n.single_delivery > 0, n.segment_id, n.sequence, n.retry_after_s, f.pause_s,
       now() + make_interval(secs => CASE WHEN f.pause_s = 0 THEN 0
                                          ELSE greatest(%(pause_s_base)s * (0.5 + random() / 2), n.retry_after_s) END)
  FROM unnest(%(endpoints)s::bigint[], %(failures)s::bigint[], %(single)s::bigint[], %(segments)s::bigint[],
              %(sequences)s::bigint[], %(retry_after_s)s::bigint[])
       AS n (endpoint_id, failures, single_delivery, segment_id, sequence, retry_after_s),
       LATERAL (SELECT CASE WHEN n.failures < %(failures_min)s THEN 0
                            ELSE greatest(%(pause_s_base)s, n.retry_after_s) END::double precision AS pause_s) AS f
 ORDER BY n.endpoint_id
    ON CONFLICT (endpoint_id) DO UPDATE
   SET failures = least(b.failures + excluded.failures, 1000000),
       single_delivery = b.single_delivery AND excluded.single_delivery
               AND b.segment_id = excluded.segment_id AND b.sequence = excluded.sequence,
       retry_after_s = excluded.retry_after_s,
       probing = false,
       recorded_at = now(),
       pause_s = CASE WHEN b.probing THEN greatest(least(b.pause_s * 2, %(pause_s_max)s), excluded.retry_after_s)
                      WHEN b.pause_s = 0 AND b.failures + excluded.failures >= %(failures_min)s
                      THEN greatest(%(pause_s_base)s, excluded.retry_after_s)
                      ELSE b.pause_s END,
       paused_until = CASE WHEN b.probing
                    THEN now() + make_interval(secs => greatest(least(b.pause_s * 2, %(pause_s_max)s)
                                                                * (0.5 + random() / 2), excluded.retry_after_s))
                    WHEN b.pause_s = 0 AND b.failures + excluded.failures >= %(failures_min)s
                    THEN now() + make_interval(secs => greatest(%(pause_s_base)s * (0.5 + random() / 2),
                                                                excluded.retry_after_s))
                    ELSE b.paused_until END
