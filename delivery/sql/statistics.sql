-- Attempts at endpoints, by minute and by hour. All times are the database's.

-- name: add
-- Adds counts of endpoints to the present minute and hour. Histograms are added element by element. Rows are locked in the order
-- of endpoints, so workers do not wait for each other in a circle.
INSERT INTO endpoint_statistics AS s (step_s, starts_at, endpoint_id, delivered, client_errors, server_errors, timeouts,
                                      connection_errors, other_failures, durations, latencies)
SELECT t.step_s, to_timestamp(floor(extract(epoch FROM now()) / t.step_s) * t.step_s), u.endpoint_id, u.delivered,
       u.client_errors, u.server_errors, u.timeouts, u.connection_errors, u.other_failures, u.durations::integer[],
       u.latencies::integer[]
  FROM unnest(%(endpoints)s::bigint[], %(delivered)s::bigint[], %(client_errors)s::bigint[], %(server_errors)s::bigint[],
              %(timeouts)s::bigint[], %(connection_errors)s::bigint[], %(other_failures)s::bigint[], %(durations)s::text[],
              %(latencies)s::text[])
       AS u (endpoint_id, delivered, client_errors, server_errors, timeouts, connection_errors, other_failures, durations,
             latencies),
       (VALUES (60), (3600)) AS t (step_s)
 ORDER BY t.step_s, u.endpoint_id
    ON CONFLICT (step_s, starts_at, endpoint_id) DO UPDATE
   SET delivered = s.delivered + excluded.delivered, client_errors = s.client_errors + excluded.client_errors,
       server_errors = s.server_errors + excluded.server_errors, timeouts = s.timeouts + excluded.timeouts,
       connection_errors = s.connection_errors + excluded.connection_errors,
       other_failures = s.other_failures + excluded.other_failures,
       durations = ARRAY(SELECT COALESCE(a, 0) + COALESCE(b, 0)
                           FROM unnest(s.durations, excluded.durations) WITH ORDINALITY AS h (a, b, n) ORDER BY n),
       latencies = ARRAY(SELECT COALESCE(a, 0) + COALESCE(b, 0)
                           FROM unnest(s.latencies, excluded.latencies) WITH ORDINALITY AS h (a, b, n) ORDER BY n)

-- name: note_pending
-- The present minute and hour have the largest backlog that was counted in them. A smaller one costs a look-up.
INSERT INTO endpoint_statistics AS s (step_s, starts_at, endpoint_id, pending)
SELECT t.step_s, to_timestamp(floor(extract(epoch FROM now()) / t.step_s) * t.step_s), u.endpoint_id, u.pending
  FROM unnest(%(endpoints)s::bigint[], %(pending)s::bigint[]) AS u (endpoint_id, pending), (VALUES (60), (3600)) AS t (step_s)
 WHERE NOT EXISTS (SELECT FROM endpoint_statistics e
                    WHERE e.step_s = t.step_s AND e.endpoint_id = u.endpoint_id AND e.pending >= u.pending
                      AND e.starts_at = to_timestamp(floor(extract(epoch FROM now()) / t.step_s) * t.step_s))
 ORDER BY t.step_s, u.endpoint_id
    ON CONFLICT (step_s, starts_at, endpoint_id) DO UPDATE SET pending = greatest(s.pending, excluded.pending)

-- name: points
-- An endpoint's last steps, the present one included, the oldest first; those without attempts have zeros. One look-up each.
SELECT p.starts_at, COALESCE(s.delivered, 0) AS delivered, COALESCE(s.client_errors, 0) AS client_errors,
       COALESCE(s.server_errors, 0) AS server_errors, COALESCE(s.timeouts, 0) AS timeouts,
       COALESCE(s.connection_errors, 0) AS connection_errors, COALESCE(s.other_failures, 0) AS other_failures,
       COALESCE(s.pending, 0) AS pending, COALESCE(s.durations, '{}') AS durations, COALESCE(s.latencies, '{}') AS latencies
  FROM (SELECT to_timestamp((floor(extract(epoch FROM now()) / %(step_s)s) - n) * %(step_s)s) AS starts_at
          FROM generate_series(0, %(steps)s - 1) AS n) AS p
  LEFT JOIN endpoint_statistics s
    ON s.step_s = %(step_s)s AND s.starts_at = p.starts_at AND s.endpoint_id = %(endpoint)s
 ORDER BY p.starts_at

-- name: pending
-- The pending deliveries of an endpoint, parallel and ordered ones, each by its own partial index, up to `count_max`. If there are
-- more: the largest number that was counted in the present minute or the one before.
SELECT CASE WHEN c.pending < %(count_max)s THEN c.pending
            ELSE greatest(c.pending, (
                SELECT max(s.pending) FROM endpoint_statistics s
                 WHERE s.step_s = 60 AND s.endpoint_id = %(endpoint)s
                   AND s.starts_at IN (to_timestamp(floor(extract(epoch FROM now()) / 60) * 60),
                                       to_timestamp((floor(extract(epoch FROM now()) / 60) - 1) * 60))))
       END AS pending
  FROM (
    SELECT count(*) AS pending
      FROM (
        (SELECT FROM deliveries WHERE endpoint_id = %(endpoint)s AND state = 'pending' AND NOT ordered LIMIT %(count_max)s)
        UNION ALL
        (SELECT FROM deliveries WHERE endpoint_id = %(endpoint)s AND state = 'pending' AND ordered LIMIT %(count_max)s)
        LIMIT %(count_max)s
      ) AS first
  ) AS c

-- name: forget
-- Deletes some of the rows that are older than what is shown.
WITH old AS (
    (SELECT step_s, starts_at, endpoint_id FROM endpoint_statistics
      WHERE step_s = 60 AND starts_at < now() - make_interval(mins => %(minutes)s)
      ORDER BY step_s, starts_at LIMIT %(rows_max)s)
    UNION ALL
    (SELECT step_s, starts_at, endpoint_id FROM endpoint_statistics
      WHERE step_s = 3600 AND starts_at < now() - make_interval(hours => %(hours)s)
      ORDER BY step_s, starts_at LIMIT %(rows_max)s)
)
DELETE FROM endpoint_statistics s USING old o
 WHERE s.step_s = o.step_s AND s.starts_at = o.starts_at AND s.endpoint_id = o.endpoint_id
