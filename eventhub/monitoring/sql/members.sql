-- The processes of the hub. All times are the database's.

-- name: heartbeat
-- A process whose row is gone was announced as lost; it joins again, and its start stays the same. The commit does not wait for
-- the disk, because heartbeats are repeated. A row that is being announced is skipped: leases and other heartbeats are sent on
-- the same connection, and do not wait for the events.
WITH known AS (
    SELECT id FROM members
     WHERE id = %(id)s AND set_config('synchronous_commit', 'off', true) = 'off'
       FOR NO KEY UPDATE SKIP LOCKED
), seen AS (
    UPDATE members m SET last_seen_at = clock_timestamp() FROM known WHERE m.id = known.id
)
INSERT INTO members (id, kind, node, pid, version, settings, started_at, last_seen_at)
SELECT %(id)s, %(kind)s, %(node)s, %(pid)s, %(version)s, %(settings)s::jsonb,
       clock_timestamp() - make_interval(secs => %(age_s)s), clock_timestamp()
 WHERE set_config('synchronous_commit', 'off', true) = 'off' AND NOT EXISTS (SELECT FROM members WHERE id = %(id)s)
    ON CONFLICT DO NOTHING

-- name: leave
UPDATE members SET left_at = clock_timestamp() WHERE id = %(id)s

-- name: notify
-- Announces to the web processes that a member joined or left, or that a zone's presence was switched.
SELECT pg_notify('eventhub_heads', 'member:0')

-- name: changed
-- Whether some member is to be announced, and the seconds until the next one is lost without a further heartbeat. `watched_s`: the
-- seconds in which a heartbeat could have been received.
SELECT COALESCE(bool_or(joined_at IS NULL OR left_at IS NOT NULL
        OR (%(watched_s)s::float8 >= %(lost_s)s::float8 AND is_over(last_seen_at + make_interval(secs => %(lost_s)s), %(lost_s)s))), false)
       AS is_changed,
       COALESCE(extract(epoch FROM min(last_seen_at) - now()) + %(lost_s)s, %(lost_s)s)::float8 AS lost_in_s
  FROM members

-- name: join
UPDATE members SET joined_at = now() WHERE joined_at IS NULL
RETURNING id::text, kind, node, pid, version, started_at, last_seen_at, false AS lost

-- name: depart
DELETE FROM members
 WHERE left_at IS NOT NULL
    OR (%(watched_s)s::float8 >= %(lost_s)s::float8 AND is_over(last_seen_at + make_interval(secs => %(lost_s)s), %(lost_s)s))
RETURNING id::text, kind, node, pid, version, started_at, last_seen_at, left_at IS NULL AS lost

-- name: running
-- The members that have not ended, as far as is known, with the digests of their settings.
SELECT id::text, kind, node, settings::text, (extract(epoch FROM last_seen_at) * 1000000)::bigint AS last_seen_us
  FROM members
 WHERE left_at IS NULL AND settings IS NOT NULL AND NOT is_over(last_seen_at + make_interval(secs => %(lost_s)s), %(lost_s)s)
 ORDER BY kind, id

-- name: count
SELECT kind, count(*) AS members FROM members WHERE left_at IS NULL GROUP BY kind
