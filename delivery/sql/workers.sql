-- Heartbeats of workers, the release of what dead workers held, and the repair of times after the clock stepped back.

-- name: asynchronous_commit
-- Nothing here has to survive a crash of the database: heartbeats are repeated, and what has to be freed or repaired is found
-- again.
SELECT set_config('synchronous_commit', 'off', false)

-- name: heartbeat
-- Writes this worker's heartbeat; returns the time, the workers without one for too long, how many others there are, and how
-- many of these are before this one in the order of ids. A heartbeat in the future is from before the clock stepped back.
WITH written AS (
    INSERT INTO callback_workers (id, last_seen_at) VALUES (%(id)s, clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET last_seen_at = excluded.last_seen_at
    RETURNING last_seen_at
)
SELECT extract(epoch FROM (SELECT last_seen_at FROM written))::float8 AS at_s,
       ARRAY(SELECT id FROM callback_workers
              WHERE id <> %(id)s AND is_over(last_seen_at + make_interval(secs => %(silent_s)s), %(silent_s)s)) AS silent,
       o.others, o.before
  FROM (SELECT count(*) AS others, count(*) FILTER (WHERE id < %(id)s) AS before FROM callback_workers WHERE id <> %(id)s) AS o

-- name: notify
-- Announces new deliveries, with a random number that chooses the worker that looks at once. Never inside the transaction that
-- writes them if its commit waits for the disk: NOTIFY would serialise it.
SELECT pg_notify('eventhub_deliveries', floor(random() * 1000000)::int::text)

-- name: leave
-- Unregisters workers; the last heartbeat of any of them is retained.
WITH removed AS (
    DELETE FROM callback_workers WHERE id = ANY (%(ids)s) RETURNING last_seen_at
)
INSERT INTO heartbeats (part, last_seen_at)
SELECT 'worker', max(last_seen_at) FROM removed HAVING count(*) > 0
    ON CONFLICT (part) DO UPDATE SET last_seen_at = greatest(heartbeats.last_seen_at, excluded.last_seen_at)

-- name: free_parallel
-- Frees claims with tokens in a range, for a page of endpoints after the given one: how many, and the last endpoint of the page
-- if there may be more. A claimed delivery is due in the future, by at most the time of a claim; one due later waits for a
-- retry, or is repaired.
WITH RECURSIVE hop AS (
    (SELECT endpoint_id, 1 AS number FROM deliveries
      WHERE state = 'pending' AND NOT ordered AND endpoint_id > %(after)s
      ORDER BY endpoint_id LIMIT 1)
    UNION ALL
    SELECT next.endpoint_id, hop.number + 1
      FROM hop, LATERAL (
        SELECT endpoint_id FROM deliveries
         WHERE state = 'pending' AND NOT ordered AND endpoint_id > hop.endpoint_id
         ORDER BY endpoint_id LIMIT 1) AS next
     WHERE hop.number < %(rows_max)s
), held AS MATERIALIZED (
    SELECT d.partition_id, d.endpoint_id, d.segment_id, d.sequence
      FROM hop, LATERAL (
        SELECT partition_id, endpoint_id, segment_id, sequence, claim FROM deliveries
         WHERE endpoint_id = hop.endpoint_id AND state = 'pending' AND NOT ordered AND next_attempt_at > now()
           AND next_attempt_at <= now() + make_interval(secs => %(claim_s)s + 1)
        OFFSET 0) AS d
     WHERE d.claim BETWEEN %(first)s AND %(last)s
), freed AS (
    UPDATE deliveries d SET claim = NULL, next_attempt_at = now()
      FROM held h
     WHERE d.partition_id = h.partition_id AND d.endpoint_id = h.endpoint_id AND d.segment_id = h.segment_id
       AND d.sequence = h.sequence
       AND d.state = 'pending' AND d.claim BETWEEN %(first)s AND %(last)s
    RETURNING 1
)
SELECT (SELECT count(*) FROM freed) AS changed, CASE WHEN count(*) >= %(rows_max)s THEN ARRAY[max(endpoint_id)] END AS after FROM hop

-- name: repair_parallel
-- For a page of endpoints as above: of the deliveries due last, those due later than any pause allows become due at once. A
-- claim of a worker that is alive stays until it expires.
WITH RECURSIVE hop AS (
    (SELECT endpoint_id, 1 AS number FROM deliveries
      WHERE state = 'pending' AND NOT ordered AND endpoint_id > %(after)s
      ORDER BY endpoint_id LIMIT 1)
    UNION ALL
    SELECT next.endpoint_id, hop.number + 1
      FROM hop, LATERAL (
        SELECT endpoint_id FROM deliveries
         WHERE state = 'pending' AND NOT ordered AND endpoint_id > hop.endpoint_id
         ORDER BY endpoint_id LIMIT 1) AS next
     WHERE hop.number < %(rows_max)s
), ahead AS MATERIALIZED (
    SELECT d.* FROM hop, LATERAL (
        SELECT partition_id, endpoint_id, segment_id, sequence, next_attempt_at, claim, pause_s FROM deliveries
         WHERE endpoint_id = hop.endpoint_id AND state = 'pending' AND NOT ordered AND next_attempt_at > now()
         ORDER BY next_attempt_at DESC LIMIT %(deliveries_max)s) AS d
     WHERE is_due(d.next_attempt_at, d.claim, d.pause_s)
        OR d.claim IS NOT NULL AND is_over(d.next_attempt_at, %(claim_s)s)
           AND NOT EXISTS (SELECT FROM callback_workers w WHERE w.id = (left(d.claim::text, 18) || '-0000-000000000000')::uuid)
), repaired AS (
    UPDATE deliveries d SET claim = NULL, next_attempt_at = now()
      FROM ahead a
     WHERE d.partition_id = a.partition_id AND d.endpoint_id = a.endpoint_id AND d.segment_id = a.segment_id
       AND d.sequence = a.sequence
       AND d.state = 'pending' AND d.claim IS NOT DISTINCT FROM a.claim AND d.next_attempt_at = a.next_attempt_at
    RETURNING 1
)
SELECT (SELECT count(*) FROM repaired) AS changed, CASE WHEN count(*) >= %(rows_max)s THEN ARRAY[max(endpoint_id)] END AS after FROM hop

-- name: free_lanes
-- Frees lanes taken with tokens in a range, and lanes held for longer than possible by no worker that is alive, together with
-- their claimed deliveries, which are the oldest ones. Holding a lane means holding its deliveries.
WITH held AS MATERIALIZED (
    SELECT endpoint_id, stream_id FROM lanes l
     WHERE l.token BETWEEN %(first)s AND %(last)s
        OR l.expires_at > now() AND is_over(l.expires_at, %(claim_s)s)
           AND NOT EXISTS (SELECT FROM callback_workers w WHERE w.id = (left(l.token::text, 18) || '-0000-000000000000')::uuid)
     ORDER BY endpoint_id, stream_id FOR UPDATE
), freed AS (
    UPDATE deliveries d SET claim = NULL, next_attempt_at = now()
      FROM held h, LATERAL (
        SELECT partition_id, endpoint_id, segment_id, sequence FROM deliveries
         WHERE endpoint_id = h.endpoint_id AND COALESCE(lane, stream_id) = h.stream_id
           AND state = 'pending' AND ordered
         ORDER BY sequence LIMIT %(deliveries_max)s) AS o
     WHERE d.partition_id = o.partition_id AND d.endpoint_id = o.endpoint_id AND d.segment_id = o.segment_id
       AND d.sequence = o.sequence
       AND d.state = 'pending' AND d.claim IS NOT NULL
    RETURNING 1
)
UPDATE lanes l SET expires_at = 'epoch', due_at = now(), touched = true
  FROM held h
 WHERE l.endpoint_id = h.endpoint_id AND l.stream_id = h.stream_id

-- name: repair_lanes
-- For a page of lanes after the given one, by their oldest deliveries: marks those that are due although their rows are missing or
-- say otherwise, after the clock stepped back, or because release 0.1 wrote the deliveries.
WITH RECURSIVE hop AS (
    (SELECT endpoint_id, COALESCE(lane, stream_id) AS number, next_attempt_at, claim, pause_s, 1 AS n
       FROM deliveries
      WHERE state = 'pending' AND ordered
        AND (endpoint_id, COALESCE(lane, stream_id)) > (%(after)s, %(after_lane)s)
      ORDER BY endpoint_id, COALESCE(lane, stream_id), sequence LIMIT 1)
    UNION ALL
    SELECT next.endpoint_id, next.number, next.next_attempt_at, next.claim, next.pause_s, hop.n + 1
      FROM hop, LATERAL (
        SELECT endpoint_id, COALESCE(lane, stream_id) AS number, next_attempt_at, claim, pause_s
          FROM deliveries
         WHERE state = 'pending' AND ordered
           AND (endpoint_id, COALESCE(lane, stream_id)) > (hop.endpoint_id, hop.number)
         ORDER BY endpoint_id, COALESCE(lane, stream_id), sequence LIMIT 1) AS next
     WHERE hop.n < %(rows_max)s
), marked AS (
    INSERT INTO lanes AS l (endpoint_id, stream_id, token, expires_at, due_at, touched)
    SELECT hop.endpoint_id, hop.number, NULL::uuid, 'epoch', now(), true
      FROM hop LEFT JOIN lanes r ON r.endpoint_id = hop.endpoint_id AND r.stream_id = hop.number
     WHERE r.due_at IS NULL
        OR r.expires_at <= now() AND r.due_at > now()
           AND is_due(hop.next_attempt_at, hop.claim, hop.pause_s)
     ORDER BY 1, 2
        ON CONFLICT (endpoint_id, stream_id) DO UPDATE SET touched = true, due_at = excluded.due_at
         WHERE l.due_at IS NULL OR l.expires_at <= now()
    RETURNING 1
), last AS (
    SELECT endpoint_id, number FROM hop WHERE n >= %(rows_max)s
)
SELECT (SELECT count(*) FROM marked) AS changed, (SELECT ARRAY[endpoint_id, number] FROM last) AS after
