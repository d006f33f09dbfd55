-- The access tokens of endpoints (OAuth 2.0). One row for each endpoint; the worker that claims it requests the next token.
-- A token that was obtained in the future was obtained before the clock stepped back: when it ends is not known.

-- name: stored
SELECT secret_id, sealed, (extract(epoch FROM obtained_at) * 1000000)::bigint AS obtained_us,
       CASE WHEN obtained_at > clock_timestamp() THEN 0 ELSE extract(epoch FROM expires_at - now()) END::float8 AS valid_s,
       COALESCE(NOT is_over(claimed_until, %(claim_s)s), false) AS is_claimed, error
  FROM endpoint_tokens WHERE endpoint_id = %(endpoint)s

-- name: claim
-- Claims the row if the token has expired and nobody requests one, or if it is of an older authentication. An authentication
-- that was replaced claims nothing.
INSERT INTO endpoint_tokens AS t (endpoint_id, secret_id, claim, claimed_until)
VALUES (%(endpoint)s, %(secret)s, %(claim)s, now() + make_interval(secs => %(claim_s)s))
    ON CONFLICT (endpoint_id) DO UPDATE
   SET secret_id = excluded.secret_id, claim = excluded.claim, claimed_until = excluded.claimed_until, error = NULL,
       sealed = NULL, obtained_at = NULL, expires_at = NULL
 WHERE t.secret_id < excluded.secret_id
    OR t.secret_id = excluded.secret_id AND (t.claimed_until IS NULL OR is_over(t.claimed_until, %(claim_s)s))
       AND (t.expires_at IS NULL OR t.expires_at <= now() OR t.obtained_at > clock_timestamp())

-- name: store
UPDATE endpoint_tokens
   SET sealed = %(sealed)s, obtained_at = clock_timestamp(), expires_at = now() + make_interval(secs => %(used_s)s),
       claim = NULL, claimed_until = NULL, error = NULL
 WHERE endpoint_id = %(endpoint)s AND claim = %(claim)s
RETURNING (extract(epoch FROM obtained_at) * 1000000)::bigint AS obtained_us

-- name: fail
-- Until the pause, which is shorter than a claim, is over, no worker requests a token, and attempts fail with the error.
UPDATE endpoint_tokens
   SET error = %(error)s, claim = NULL, claimed_until = now() + make_interval(secs => %(pause_s)s)
 WHERE endpoint_id = %(endpoint)s AND claim = %(claim)s

-- name: reject
-- Ends a token that the endpoint answered with 401, unless it was issued a moment ago.
UPDATE endpoint_tokens SET expires_at = now()
 WHERE endpoint_id = %(endpoint)s AND (obtained_at <= now() - make_interval(secs => %(age_s)s) OR obtained_at > clock_timestamp())
   AND (extract(epoch FROM obtained_at) * 1000000)::bigint = %(obtained_us)s
