-- Leases of the rows of `{table}` by forwarders (delivery/forward/leases.py).

-- name: acquire
-- Takes free rows up to this forwarder's share: all rows divided by all live forwarders, less those it has. Skips rows
-- that another forwarder is taking. A lease that expires later than possible, or a heartbeat in the future, is from before the
-- clock stepped back and does not count.
WITH share AS (
    SELECT ceil((SELECT count(*) FROM {table})::numeric
                / (1 + (SELECT count(*) FROM forwarders
                         WHERE NOT is_over(last_seen_at + make_interval(secs => %(lease_s)s), %(lease_s)s)
                           AND id <> %(owner)s)))
           AS leases
), free AS (
    SELECT {key} FROM {table}
     WHERE is_over(expires_at, %(lease_s)s) AND {key} <> ALL (%(held)s)
     ORDER BY expires_at
     LIMIT (SELECT greatest(least(leases - cardinality(%(held)s::bigint[]), %(leases_max)s), 0)::bigint FROM share)
       FOR UPDATE SKIP LOCKED
)
UPDATE {table} f
   SET owner = %(owner)s, epoch = f.epoch + 1, expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
  FROM free
 WHERE f.{key} = free.{key}
RETURNING f.{key} AS id, f.epoch

-- name: renew
-- Renews every lease that is still held, and writes the heartbeat; returns the leases that are lost and renewed, and when the
-- first lease of another forwarder expires. Skips rows that a write has locked: the write renews its lease too. The commit does
-- not wait for the disk: a renewal that is lost in a crash is a lease that expires earlier, and its epoch stays.
WITH requested AS (
    SELECT id, epoch FROM unnest(%(ids)s::bigint[], %(epochs)s::bigint[]) AS v (id, epoch)
), mine AS (
    SELECT f.{key} FROM {table} f JOIN requested a ON a.id = f.{key} AND a.epoch = f.epoch
       FOR NO KEY UPDATE OF f SKIP LOCKED
), renewed AS (
    UPDATE {table} f
       SET expires_at = clock_timestamp() + make_interval(secs => %(lease_s)s)
      FROM mine
     WHERE f.{key} = mine.{key}
    RETURNING f.{key}
), heartbeat AS (
    INSERT INTO forwarders (id) SELECT %(owner)s WHERE set_config('synchronous_commit', 'off', true) = 'off'
        ON CONFLICT (id) DO UPDATE SET last_seen_at = clock_timestamp()
    RETURNING id
)
SELECT COALESCE((SELECT array_agg(a.id) FROM requested a
                  WHERE NOT EXISTS (SELECT FROM {table} f WHERE f.{key} = a.id AND f.epoch = a.epoch)),
                '{}') AS lost_ids,
       COALESCE((SELECT array_agg({key}) FROM renewed), '{}') AS renewed_ids,
       (SELECT count(*) FROM {table}) AS total,
       (SELECT count(*) FROM forwarders
         WHERE NOT is_over(last_seen_at + make_interval(secs => %(lease_s)s), %(lease_s)s) AND id <> %(owner)s) + 1 AS forwarders,
       (SELECT CASE WHEN bool_or(is_over(f.expires_at, %(lease_s)s)) THEN 0
                    ELSE extract(epoch FROM min(f.expires_at) - clock_timestamp()) END::float8
          FROM {table} f
         WHERE NOT EXISTS (SELECT FROM requested a WHERE a.id = f.{key} AND a.epoch = f.epoch)) AS free_s

-- name: release
UPDATE {table} f SET expires_at = clock_timestamp()
  FROM unnest(%(ids)s::bigint[], %(epochs)s::bigint[]) AS v (id, epoch)
 WHERE f.{key} = v.id AND f.epoch = v.epoch

-- name: leave
DELETE FROM forwarders WHERE id = %(owner)s OR is_over(last_seen_at + interval '1 hour', 3600)
