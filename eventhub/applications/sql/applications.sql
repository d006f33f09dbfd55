-- States that the hub itself changes. The caller has locked the head of the zone's stream, so that states change one after the
-- other and a group's state is derived from what is committed.

-- name: regroup
-- Derive the states of groups, by id and of applications; return those that changed.
WITH touched AS (
    SELECT group_id AS id FROM application_members WHERE application_id = ANY (%(applications)s::bigint[])
    UNION
    SELECT unnest(%(groups)s::bigint[])
), derived AS (
    SELECT g.id, g.state AS previous,
           CASE WHEN count(*) FILTER (WHERE a.state <> 'offline') = 0 THEN 'offline'
                WHEN count(*) FILTER (WHERE a.state <> 'online') = 0 THEN 'online'
                WHEN count(*) FILTER (WHERE a.state NOT IN ('faulted', 'offline')) = 0 THEN 'faulted'
                ELSE 'degraded'
           END AS state
      FROM touched t
      JOIN application_groups g ON g.id = t.id
      LEFT JOIN application_members m ON m.group_id = g.id
      LEFT JOIN applications a ON a.id = m.application_id
     GROUP BY g.id
)
UPDATE application_groups g SET state = d.state, since = statement_timestamp()
  FROM derived d
 WHERE g.id = d.id AND g.state <> d.state
RETURNING g.name, g.state, g.since, d.previous

-- name: due
-- The applications whose heartbeat may be missed, with the stream of their zone; no stream: it is deleted, with the zone.
SELECT a.id, a.zone_id, s.id AS stream_id
  FROM (SELECT id, zone_id, due_at FROM applications WHERE due_at <= now() ORDER BY due_at LIMIT %(rows_max)s) AS a
  LEFT JOIN streams s ON s.zone_id = a.zone_id AND s.name = %(stream)s AND s.deleted_at IS NULL
 ORDER BY a.zone_id

-- name: next
-- The seconds until a heartbeat may be missed; null: none is expected.
SELECT extract(epoch FROM min(due_at) - now())::float8 FROM applications WHERE due_at IS NOT NULL

-- name: postpone
-- A heartbeat came since, or nobody could have received one for the whole time-out.
UPDATE applications
   SET due_at = greatest(heartbeat_at, now() - %(watched_s)s * interval '1 second') + timeout_s * interval '1 second'
 WHERE id = ANY (%(ids)s::bigint[]) AND due_at <= now()
   AND greatest(heartbeat_at, now() - %(watched_s)s * interval '1 second') + timeout_s * interval '1 second' > now()

-- name: miss
-- The heartbeats of some applications of a zone are missed; once, because they are expected again only after a heartbeat.
WITH missed AS (
    SELECT id, state AS previous FROM applications
     WHERE id = ANY (%(ids)s::bigint[]) AND due_at <= now()
       AND greatest(heartbeat_at, now() - %(watched_s)s * interval '1 second') + timeout_s * interval '1 second' <= now()
     ORDER BY id
       FOR UPDATE
)
UPDATE applications a
   SET state = 'offline', reason = %(reason)s, due_at = NULL,
       since = CASE WHEN m.previous = 'offline' THEN a.since ELSE statement_timestamp() END
  FROM missed m
 WHERE a.id = m.id
RETURNING a.id, a.name, a.state, a.reason, a.since, a.timeout_s, m.previous

-- name: forget
-- No heartbeat is expected of applications of a deleted zone.
UPDATE applications SET due_at = NULL WHERE id = ANY (%s::bigint[])

-- name: count
SELECT state, count(*) AS applications FROM applications GROUP BY state
