-- The shared token buckets of the rates of emits. All times are the database's.

-- name: lease
-- Takes tokens from a bucket, which refills at its rate up to one second's: as many as there are, up to those preferred, and at
-- least those needed, so that a request larger than the bucket leaves a debt. None while there is a debt.
WITH clock AS (
    SELECT clock_timestamp() AS now
), bucket AS (
    SELECT c.now, CASE WHEN b.refilled_at > c.now + interval '2 s' THEN %(rate)s::float8  -- the clock stepped back
               ELSE least(%(rate)s::float8,
                          b.tokens + %(rate)s::float8 * greatest(extract(epoch FROM c.now - b.refilled_at)::float8, 0)) END
           AS tokens
      FROM rate_buckets b, clock c WHERE b.zone_id = %(zone)s AND b.client_id = %(client)s
       FOR UPDATE OF b
), lease AS (
    SELECT now, tokens, CASE WHEN tokens <= 0 THEN 0::float8
               ELSE greatest(%(needed)s::float8, least(%(preferred)s::float8, floor(tokens))) END AS granted
      FROM bucket
)
UPDATE rate_buckets b SET tokens = lease.tokens - lease.granted, refilled_at = lease.now
  FROM lease WHERE b.zone_id = %(zone)s AND b.client_id = %(client)s
RETURNING lease.granted, b.tokens AS left

-- name: add_bucket
INSERT INTO rate_buckets (zone_id, client_id, tokens, refilled_at)
VALUES (%(zone)s, %(client)s, %(rate)s::float8, clock_timestamp()) ON CONFLICT DO NOTHING

-- name: rates
-- The rates of a client and of its zone, as far as there are any; client 0: of the zone.
SELECT COALESCE(client_id, 0) AS client_id, value FROM quotas
 WHERE zone_id = %(zone)s AND kind = 'events_per_s' AND (client_id = %(client)s OR client_id IS NULL)
 ORDER BY 1 DESC

-- name: spent
-- What the bucket lacks: about the events of the last second.
SELECT ceil(%(rate)s::float8 - least(%(rate)s::float8, tokens + %(rate)s::float8 * greatest(
                extract(epoch FROM clock_timestamp() - refilled_at)::float8, 0)))::bigint
  FROM rate_buckets WHERE zone_id = %(zone)s AND client_id = %(client)s
