-- Workers that live, what those that died held, and what a clock that stepped back holds up.

-- name: hasty
-- Nothing here has to outlast a crash of the database: signs of life come again, and what is to be freed or mended is found again.
SELECT set_config('synchronous_commit', 'off', false)

-- name: beat
-- This worker lives; the time, and the others that have been silent for too long. Who was seen in the future was seen
-- before the clock stepped back.
WITH seen AS (
    INSERT INTO callback_workers (id, last_seen_at) VALUES (%(id)s, clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET last_seen_at = excluded.last_seen_at
    RETURNING last_seen_at
)
SELECT extract(epoch FROM (SELECT last_seen_at FROM seen))::float8 AS at_s,
       ARRAY(SELECT id FROM callback_workers
              WHERE id <> %(id)s AND is_over(last_seen_at + make_interval(secs => %(silent_s)s), %(silent_s)s)) AS silent

-- name: notify
-- There are new deliveries; never inside of the transaction that writes them, whose commit it would serialise.
SELECT pg_notify('eventhub_deliveries', '')

-- name: leave
-- That they have gone; when the last of them was seen stays known.
WITH gone AS (
    DELETE FROM callback_workers WHERE id = ANY (%(ids)s) RETURNING last_seen_at
)
INSERT INTO heartbeats (part, last_seen_at)
SELECT 'worker', max(last_seen_at) FROM gone HAVING count(*) > 0
    ON CONFLICT (part) DO UPDATE SET last_seen_at = greatest(heartbeats.last_seen_at, excluded.last_seen_at)

-- name: free_parallel
-- Claims whose tokens are between these are due at once, of some endpoints behind one; how many, and the last endpoint that
-- was looked at if there may be more. Claimed deliveries are those whose time lies ahead, by a claim's time at most: what
-- lies further ahead waits for its next try, or is mended.
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
     WHERE hop.number < %(endpoints_max)s
), held AS MATERIALIZED (
    SELECT d.partition_id, d.endpoint_id, d.segment_id, d.sequence, d.run
      FROM hop, LATERAL (
        SELECT partition_id, endpoint_id, segment_id, sequence, run, claim FROM deliveries
         WHERE endpoint_id = hop.endpoint_id AND state = 'pending' AND NOT ordered AND next_attempt_at > now()
           AND next_attempt_at <= now() + make_interval(secs => %(claim_s)s + 1)
        OFFSET 0) AS d
     WHERE d.claim BETWEEN %(first)s AND %(last)s
), freed AS (
    UPDATE deliveries d SET claim = NULL, next_attempt_at = now()
      FROM held h
     WHERE d.partition_id = h.partition_id AND d.endpoint_id = h.endpoint_id AND d.segment_id = h.segment_id
       AND d.sequence = h.sequence AND d.run = h.run
       AND d.state = 'pending' AND d.claim BETWEEN %(first)s AND %(last)s
    RETURNING 1
)
SELECT (SELECT count(*) FROM freed) AS changed, CASE WHEN count(*) >= %(endpoints_max)s THEN max(endpoint_id) END AS after FROM hop

-- name: mend_parallel
-- Of some endpoints behind one the deliveries that lie furthest ahead: those that lie further ahead than they can have been
-- put off are due; how many, and the last endpoint as above. A claim of a worker that lives is its own until it ends.
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
     WHERE hop.number < %(endpoints_max)s
), ahead AS MATERIALIZED (
    SELECT d.* FROM hop, LATERAL (
        SELECT partition_id, endpoint_id, segment_id, sequence, run, next_attempt_at, claim, attempts, retry_after_s
          FROM deliveries
         WHERE endpoint_id = hop.endpoint_id AND state = 'pending' AND NOT ordered AND next_attempt_at > now()
         ORDER BY next_attempt_at DESC LIMIT %(deliveries_max)s) AS d
     WHERE is_due(d.next_attempt_at, d.claim, d.attempts, d.retry_after_s, %(retry_s_base)s, %(retry_s_max)s)
        OR d.claim IS NOT NULL AND is_over(d.next_attempt_at, %(claim_s)s)
           AND NOT EXISTS (SELECT FROM callback_workers w WHERE w.id = (left(d.claim::text, 18) || '-0000-000000000000')::uuid)
), mended AS (
    UPDATE deliveries d SET claim = NULL, next_attempt_at = now()
      FROM ahead a
     WHERE d.partition_id = a.partition_id AND d.endpoint_id = a.endpoint_id AND d.segment_id = a.segment_id
       AND d.sequence = a.sequence AND d.run = a.run
       AND d.state = 'pending' AND d.claim IS NOT DISTINCT FROM a.claim AND d.next_attempt_at = a.next_attempt_at
    RETURNING 1
)
SELECT (SELECT count(*) FROM mended) AS changed, CASE WHEN count(*) >= %(endpoints_max)s THEN max(endpoint_id) END AS after FROM hop

-- name: free_lanes
-- Lanes that were taken with tokens between these, and those that are held further ahead than they can be by nobody that
-- lives; with what is claimed of them, which are the oldest deliveries, in the same moment. Who holds a lane holds these.
WITH held AS MATERIALIZED (
    SELECT endpoint_id, stream_id, run FROM lanes l
     WHERE l.token BETWEEN %(first)s AND %(last)s
        OR l.expires_at > now() AND is_over(l.expires_at, %(claim_s)s)
           AND NOT EXISTS (SELECT FROM callback_workers w WHERE w.id = (left(l.token::text, 18) || '-0000-000000000000')::uuid)
     ORDER BY endpoint_id, stream_id, run FOR UPDATE
), freed AS (
    UPDATE deliveries d SET claim = NULL, next_attempt_at = now()
      FROM held h, LATERAL (
        SELECT partition_id, endpoint_id, segment_id, sequence, run FROM deliveries
         WHERE endpoint_id = h.endpoint_id AND stream_id = h.stream_id AND run = h.run
           AND state = 'pending' AND ordered
         ORDER BY sequence LIMIT %(deliveries_max)s) AS o
     WHERE d.partition_id = o.partition_id AND d.endpoint_id = o.endpoint_id AND d.segment_id = o.segment_id
       AND d.sequence = o.sequence AND d.run = o.run
       AND d.state = 'pending' AND d.claim IS NOT NULL
    RETURNING 1
)
UPDATE lanes l SET expires_at = 'epoch'
  FROM held h
 WHERE l.endpoint_id = h.endpoint_id AND l.stream_id = h.stream_id AND l.run = h.run
