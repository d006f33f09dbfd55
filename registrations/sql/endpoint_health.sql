-- The health of endpoints.

-- name: write
-- Skips endpoints whose row has the same outcome and is recent. `failing_since` stays until an attempt is delivered.
WITH updates AS (
    SELECT v.endpoint_id, v.outcome, v.status::integer AS status,
           now() - v.tried_us * interval '1 microsecond' AS attempted_at,
           now() - v.delivered_us * interval '1 microsecond' AS delivered_at,
           now() - v.failing_us * interval '1 microsecond' AS failing_since
      FROM unnest(%(endpoints)s::bigint[], %(outcomes)s::text[], %(statuses)s::bigint[], %(tried_us)s::bigint[],
                  %(delivered_us)s::bigint[], %(failing_us)s::bigint[])
           AS v (endpoint_id, outcome, status, tried_us, delivered_us, failing_us)
)
INSERT INTO endpoint_health AS h (endpoint_id, attempted_at, outcome, status, delivered_at, failing_since)
SELECT n.endpoint_id, n.attempted_at, n.outcome, n.status, n.delivered_at, n.failing_since
  FROM updates n LEFT JOIN endpoint_health k ON k.endpoint_id = n.endpoint_id
 WHERE k.endpoint_id IS NULL OR k.outcome <> n.outcome OR k.status IS DISTINCT FROM n.status
    OR (k.failing_since IS NULL) <> (n.failing_since IS NULL)
    OR k.attempted_at < n.attempted_at - make_interval(secs => %(interval_s)s)
 ORDER BY n.endpoint_id
    ON CONFLICT (endpoint_id) DO UPDATE
   SET attempted_at = excluded.attempted_at, outcome = excluded.outcome, status = excluded.status,
       delivered_at = COALESCE(excluded.delivered_at, h.delivered_at),
       failing_since = CASE WHEN excluded.failing_since IS NULL THEN NULL
                            WHEN excluded.delivered_at IS NOT NULL THEN excluded.failing_since
                            ELSE COALESCE(h.failing_since, excluded.failing_since) END
 WHERE h.attempted_at <= excluded.attempted_at

