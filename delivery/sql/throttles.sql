-- The rate limits and the concurrency of endpoints, over all workers: a token bucket in a row of each endpoint that has a limit, and
-- the number of its claims. The rate that a receiver agreed to (allowed_rate, per minute) is a rate limit too. The row is locked
-- until the claims are committed, so claims of two workers do not overlap.

-- name: add
-- Inserts missing rows. For a row that exists, the insertion would wait until no other worker has it locked.
INSERT INTO endpoint_throttles (endpoint_id)
SELECT endpoint_id FROM unnest(%(endpoints)s::bigint[]) AS u (endpoint_id)
 WHERE NOT EXISTS (SELECT FROM endpoint_throttles t WHERE t.endpoint_id = u.endpoint_id)
 ORDER BY 1
    ON CONFLICT (endpoint_id) DO NOTHING

-- name: lock
-- Locks the rows of those endpoints for which no other worker is claiming at this moment.
SELECT endpoint_id FROM endpoint_throttles WHERE endpoint_id = ANY (%(endpoints)s)
 ORDER BY endpoint_id FOR UPDATE SKIP LOCKED

-- name: take
-- After `lock`, in a statement of its own, so that it sees what was committed before: how many slots (requests at a time) and
-- tokens (requests) each endpoint may get now; the tokens are taken from the bucket. A slot takes up to `per_slot` tokens. The
-- deliveries or lanes of one claim share the requests of a batch, so they hold as many slots as they fill batches. A bucket
-- holds the requests of a second, at least one; `full_at` is when it will be full again.
WITH held AS (
    SELECT u.endpoint_id, u.count, least(e.rate_limit, e.allowed_rate / 60.0::float8) AS rate_limit, e.concurrency,
           (SELECT COALESCE(sum(ceil(claimed.count::float8 / COALESCE(e.batch_events_max, 1))), 0)::bigint
              FROM (SELECT count(*) FROM deliveries d
                     WHERE e.concurrency IS NOT NULL AND d.endpoint_id = u.endpoint_id AND d.state = 'pending' AND NOT d.ordered
                       AND d.claim IS NOT NULL
                       AND d.next_attempt_at > now() AND d.next_attempt_at <= now() + make_interval(secs => %(claim_s)s)
                     GROUP BY d.claim
                    UNION ALL
                    SELECT count(*) FROM lanes l
                     WHERE e.concurrency IS NOT NULL AND l.endpoint_id = u.endpoint_id AND l.expires_at > now()
                     GROUP BY l.token) AS claimed) AS held
      FROM unnest(%(endpoints)s::bigint[], %(counts)s::bigint[]) AS u (endpoint_id, count)
      JOIN endpoints e ON e.id = u.endpoint_id
), allowed AS (
    SELECT h.endpoint_id, h.rate_limit, greatest(0, least(h.count, h.concurrency - h.held)) AS slots,
           floor(greatest(1, h.rate_limit) + %(early)s - h.rate_limit * extract(epoch FROM f.full_at - now())) AS bucket, f.full_at
      FROM held h JOIN endpoint_throttles t ON t.endpoint_id = h.endpoint_id,
           -- later than an empty bucket takes to fill: the limit was raised, or the clock stepped back
           LATERAL (SELECT CASE WHEN t.full_at > now() + make_interval(secs => (greatest(1, h.rate_limit) + 1) / h.rate_limit)
                                THEN now() ELSE greatest(t.full_at, now()) END AS full_at) AS f
), taken AS (
    SELECT endpoint_id, rate_limit, slots, full_at,
           greatest(0, least(slots * %(per_slot)s, bucket))::bigint AS tokens
      FROM allowed
), moved AS (
    UPDATE endpoint_throttles t
       SET full_at = k.full_at + make_interval(secs => k.tokens / k.rate_limit)
      FROM taken k
     WHERE t.endpoint_id = k.endpoint_id AND k.rate_limit IS NOT NULL AND k.tokens > 0
)
SELECT endpoint_id, slots, tokens FROM taken WHERE slots > 0 AND tokens > 0

-- name: give_back
-- Returns tokens that were not used.
UPDATE endpoint_throttles t
   SET full_at = t.full_at - make_interval(secs => u.count / least(e.rate_limit, e.allowed_rate / 60.0::float8))
  FROM unnest(%(endpoints)s::bigint[], %(counts)s::bigint[]) AS u (endpoint_id, count)
  JOIN endpoints e ON e.id = u.endpoint_id
 WHERE t.endpoint_id = u.endpoint_id AND (e.rate_limit IS NOT NULL OR e.allowed_rate IS NOT NULL)
