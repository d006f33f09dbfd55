-- The deletion of zones: first the zone with its keys, then its streams (deletion.sql), then the rest.

-- name: due
SELECT id, name FROM zones WHERE deletes_at <= now() AND deleted_at IS NULL ORDER BY deletes_at, id LIMIT %s

-- name: delete
-- From here on no key counts.
WITH deleted AS (
    UPDATE zones SET deleted_at = now() WHERE id = %(id)s AND deletes_at <= now() AND deleted_at IS NULL
    RETURNING id
), revoked AS (
    UPDATE api_keys k SET revoked_at = now()
      FROM clients c, deleted d WHERE c.zone_id = d.id AND k.client_id = c.id AND k.revoked_at IS NULL
    RETURNING k.id
)
SELECT (SELECT count(*) FROM streams s WHERE s.zone_id = d.id AND s.deleted_at IS NULL) AS streams,
       (SELECT count(*) FROM revoked) AS keys
  FROM deleted d

-- name: streams_due
-- The streams of deleted zones are due. No stream is under a hold: none was when the deletion was scheduled, and policies have
-- not changed since.
UPDATE streams s SET deletes_at = now()
  FROM zones z
 WHERE z.id = s.zone_id AND z.deleted_at IS NOT NULL AND z.erased_at IS NULL
   AND s.deleted_at IS NULL AND (s.deletes_at IS NULL OR s.deletes_at > now())

-- name: emptied
-- Deleted zones of which no stream is left.
SELECT z.id, z.name FROM zones z
 WHERE z.deleted_at IS NOT NULL AND z.erased_at IS NULL
   AND NOT EXISTS (SELECT FROM streams s WHERE s.zone_id = z.id AND s.erased_at IS NULL)
 ORDER BY z.id
 LIMIT %s

-- name: clients
SELECT id, name FROM clients WHERE zone_id = %s AND deleted_at IS NULL ORDER BY id LIMIT %s

-- name: lock_client
SELECT id FROM clients WHERE id = %s FOR UPDATE

-- name: delete_client
UPDATE clients SET deleted_at = now() WHERE id = %s AND deleted_at IS NULL

-- name: erase
-- Definitions, applications, sessions, connected clients, timers, replay runs, and the positions of changes. The rows of the zone and its clients remain, because records name them.
WITH types AS (
    DELETE FROM event_types WHERE zone_id = %(id)s
), channels AS (
    DELETE FROM channels WHERE zone_id = %(id)s
), members AS (
    DELETE FROM application_members m USING application_groups g WHERE g.zone_id = %(id)s AND m.group_id = g.id
), application_groups AS (
    DELETE FROM application_groups WHERE zone_id = %(id)s
), applications AS (
    DELETE FROM applications WHERE zone_id = %(id)s
), claims AS (
    DELETE FROM session_claims WHERE session_id IN (SELECT id FROM sessions WHERE zone_id = %(id)s)
), skips AS (
    DELETE FROM session_skips WHERE session_id IN (SELECT id FROM sessions WHERE zone_id = %(id)s)
), sessions AS (
    DELETE FROM sessions WHERE zone_id = %(id)s
), session_groups AS (
    DELETE FROM session_groups WHERE zone_id = %(id)s
), timers AS (
    DELETE FROM timers WHERE zone_id = %(id)s
), timer_counts AS (
    DELETE FROM timer_counts WHERE zone_id = %(id)s
), presences AS (
    DELETE FROM client_presences WHERE zone_id = %(id)s
), quotas AS (
    DELETE FROM quotas WHERE zone_id = %(id)s
), buckets AS (
    DELETE FROM rate_buckets WHERE zone_id = %(id)s
), replays AS (
    DELETE FROM replay_runs WHERE zone_id = %(id)s
), changes AS (
    DELETE FROM resource_changes WHERE zone_id = %(id)s
)
UPDATE zones SET erased_at = now() WHERE id = %(id)s AND erased_at IS NULL
