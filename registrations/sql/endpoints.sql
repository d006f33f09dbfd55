-- Statements on endpoints that run in workers.

-- name: disable
UPDATE endpoints e SET enabled = false, reason = %(reason)s, changed_at = now()
  FROM clients c JOIN zones z ON z.id = c.zone_id
 WHERE e.id = %(id)s AND e.enabled AND e.deleted_at IS NULL AND c.id = e.client_id
RETURNING z.id AS zone_id, z.name AS zone,
          json_build_object('client', c.name, 'endpoint', e.id, 'ordered', e.ordered, 'order_by', e.order_by,
                            'format', e.format,
                            'enabled', e.enabled, 'reason', e.reason) AS attributes
