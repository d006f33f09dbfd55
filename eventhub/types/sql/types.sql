-- name: versions
SELECT domain, type, version, parent, evolution, schema, header,
       (extract(epoch FROM declared_at) * 1000000)::bigint AS declared_at_us, id
  FROM event_types WHERE zone_id = %s AND domain = %s AND type = %s ORDER BY version

-- name: newest
-- Of each type, in the order in which the types were first declared.
SELECT n.domain, n.type, n.version, n.parent, n.evolution, n.schema, n.header,
       (extract(epoch FROM n.declared_at) * 1000000)::bigint AS declared_at_us, f.id
  FROM event_types f
 CROSS JOIN LATERAL (
       SELECT * FROM event_types v
        WHERE (v.zone_id, v.domain, v.type) = (f.zone_id, f.domain, f.type)
        ORDER BY v.version DESC LIMIT 1) AS n
 WHERE f.zone_id = %s AND f.version = 1 AND f.id > %s
 ORDER BY f.id LIMIT %s

-- name: parents
-- The newest parent of a type and of those above it, the nearest first.
WITH RECURSIVE above (type, parent, depth) AS (
    SELECT t.type, t.parent, 1
      FROM (SELECT * FROM event_types WHERE zone_id = %(zone_id)s AND domain = %(domain)s AND type = %(type)s
             ORDER BY version DESC LIMIT 1) AS t
    UNION ALL
    SELECT n.type, n.parent, a.depth + 1
      FROM above a
     CROSS JOIN LATERAL (
           SELECT * FROM event_types v
            WHERE v.zone_id = %(zone_id)s AND v.domain = %(domain)s AND v.type = a.parent
            ORDER BY v.version DESC LIMIT 1) AS n
     WHERE a.depth < %(depth_max)s
)
SELECT type FROM above ORDER BY depth

-- name: subtypes
-- All versions of all types below a type.
WITH RECURSIVE below (type) AS (
    SELECT %(type)s::text
     UNION
    SELECT v.type FROM below b JOIN event_types v ON v.parent = b.type
     WHERE v.zone_id = %(zone_id)s AND v.domain = %(domain)s
)
SELECT v.domain, v.type, v.version, v.parent, v.evolution, v.schema, v.header
  FROM event_types v JOIN below b USING (type)
 WHERE v.zone_id = %(zone_id)s AND v.domain = %(domain)s AND v.type <> %(type)s

-- name: count
SELECT count(*) FROM event_types WHERE zone_id = %s

-- name: insert
INSERT INTO event_types (zone_id, domain, type, version, parent, evolution, schema, header)
VALUES (%(zone_id)s, %(domain)s, %(type)s, %(version)s, %(parent)s, %(evolution)s, %(schema)s, %(header)s)
RETURNING (extract(epoch FROM declared_at) * 1000000)::bigint AS declared_at_us

-- name: of_zone
-- The zone's name, and all its definitions; one row of nulls if it has none.
SELECT z.name AS zone, t.domain, t.type, t.version, t.parent, t.evolution, t.schema, t.header
  FROM zones z LEFT JOIN event_types t ON t.zone_id = z.id
 WHERE z.id = %s ORDER BY t.domain, t.type, t.version
