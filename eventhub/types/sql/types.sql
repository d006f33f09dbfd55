-- name: newest
-- The newest version of each type, in the order of their first declarations.
SELECT f.id, n.domain, n.type, n.version, n.parent, n.evolution, n.declared_at, n.deletes_at
  FROM event_types f
 CROSS JOIN LATERAL (
       SELECT * FROM event_types v
        WHERE (v.zone_id, v.domain, v.type) = (f.zone_id, f.domain, f.type)
        ORDER BY v.version DESC LIMIT 1) AS n
 WHERE f.zone_id = %s AND f.version = 1 AND f.deleted_at IS NULL AND f.id > %s
 ORDER BY f.id LIMIT %s

-- name: zone_definitions
-- The zone's name and all its definitions; one row of nulls if it has none.
SELECT z.name AS zone, t.domain, t.type, t.version, t.parent, t.evolution, t.schema, t.header,
       t.deleted_at IS NOT NULL AS deleted
  FROM zones z LEFT JOIN event_types t ON t.zone_id = z.id
 WHERE z.id = %s ORDER BY t.domain, t.type, t.version
