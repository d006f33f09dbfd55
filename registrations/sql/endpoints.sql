-- What of endpoints is done under other locks or by other processes than the API's.

-- name: hold_endpoints
-- So that they are not deleted before the registrations that name them are there.
SELECT id, url FROM endpoints
 WHERE client_id = %(client_id)s AND deleted_at IS NULL
   AND (id = ANY (%(ids)s::bigint[]) OR url = ANY (%(urls)s::text[]))
 ORDER BY id FOR SHARE

-- name: streams_behind
-- The streams of the live registrations that name the endpoint.
SELECT name FROM streams
 WHERE id IN (SELECT unnest(streams) FROM registration_versions WHERE endpoint_id = %s AND until_barrier IS NULL)
 ORDER BY name

-- name: delete_endpoints_of_client
UPDATE endpoints SET deleted_at = now(), changed_at = now(), enabled = false
 WHERE client_id = %s AND deleted_at IS NULL

-- name: disable
UPDATE endpoints e SET enabled = false, reason = %(reason)s, changed_at = now()
  FROM clients c JOIN zones z ON z.id = c.zone_id
 WHERE e.id = %(id)s AND e.enabled AND e.deleted_at IS NULL AND c.id = e.client_id
RETURNING z.id AS zone_id, z.name AS zone, c.name AS client, e.ordered, e.format, e.enabled, e.reason
