-- Statements on endpoints that run under the locks of registrations, or in workers.

-- name: lock_endpoints
-- Keeps them from being deleted before the registrations that name them are committed.
SELECT id, url FROM endpoints
 WHERE client_id = %(client_id)s AND deleted_at IS NULL
   AND (id = ANY (%(ids)s::bigint[]) OR url = ANY (%(urls)s::text[]))
 ORDER BY id FOR SHARE

-- name: delete_endpoints_of_client
UPDATE endpoints SET deleted_at = now(), changed_at = now(), enabled = false
 WHERE client_id = %s AND deleted_at IS NULL

-- name: disable
UPDATE endpoints e SET enabled = false, reason = %(reason)s, changed_at = now()
  FROM clients c JOIN zones z ON z.id = c.zone_id
 WHERE e.id = %(id)s AND e.enabled AND e.deleted_at IS NULL AND c.id = e.client_id
RETURNING z.id AS zone_id, z.name AS zone,
          json_build_object('client', c.name, 'endpoint', e.id, 'ordered', e.ordered, 'format', e.format,
                            'enabled', e.enabled, 'reason', e.reason) AS attributes
