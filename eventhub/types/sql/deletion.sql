-- The end of event types and channels after their grace period.

-- name: due_types
SELECT DISTINCT t.zone_id, z.name AS zone, t.domain, t.type
  FROM event_types t JOIN zones z ON z.id = t.zone_id
 WHERE t.deletes_at <= now() AND t.deleted_at IS NULL
 LIMIT %s

-- name: delete_type
UPDATE event_types SET deleted_at = now()
 WHERE zone_id = %(zone_id)s AND domain = %(domain)s AND type = %(type)s AND deletes_at <= now() AND deleted_at IS NULL

-- name: due_channels
SELECT c.id, c.zone_id, z.name AS zone, c.name
  FROM channels c JOIN zones z ON z.id = c.zone_id
 WHERE c.deletes_at <= now() AND c.deleted_at IS NULL
 ORDER BY c.id
 LIMIT %s

-- name: delete_channel
UPDATE channels SET deleted_at = now() WHERE id = %s AND deletes_at <= now() AND deleted_at IS NULL
