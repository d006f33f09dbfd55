-- The end of endpoints that have expired, with the registrations that name them.

-- name: some_expired
SELECT e.id, e.client_id, c.name AS client, e.zone_id, z.name AS zone
  FROM endpoints e JOIN clients c ON c.id = e.client_id JOIN zones z ON z.id = e.zone_id
 WHERE e.expires_at <= now() AND e.deleted_at IS NULL AND e.id > %(after)s
 ORDER BY e.id LIMIT %(rows_max)s

-- name: registrations_of_endpoint
SELECT registration_id FROM registration_versions WHERE endpoint_id = %s AND until_barrier IS NULL ORDER BY registration_id

-- name: is_expired
-- Locks the endpoint: its client may give it more time meanwhile.
SELECT id FROM endpoints WHERE id = %s AND expires_at <= now() AND deleted_at IS NULL FOR NO KEY UPDATE
