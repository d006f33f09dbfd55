-- The takeover of a database from before 0.1 (takeover.py).

-- name: sessions
-- Other sessions of this database, without those that wait for the takeover's advisory lock. Only
-- some roles can see the type of another role's backend; the server's own backends have no user.
SELECT coalesce(nullif(a.application_name, ''), 'a session') || ' (pid ' || a.pid || ')'
  FROM pg_stat_activity a
 WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.usesysid IS NOT NULL
   AND coalesce(a.backend_type, 'client backend') = 'client backend'
   AND NOT EXISTS (SELECT FROM pg_locks l
                    WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.objid = %s AND NOT l.granted)
 ORDER BY 1

-- name: foreign_objects
-- Objects that neither the old hub nor Django created, and that a takeover would drop or leave
-- without their tables. Objects of extensions do not count.
WITH ours AS MATERIALIZED (
    SELECT c.oid
      FROM pg_class c
     WHERE c.relnamespace = to_regnamespace('public')
       AND (c.relkind IN ('r', 'p')
            AND (c.relname = ANY(%(tables)s)
                 OR NOT c.relispartition
                    AND c.relname ~ '^((events|deliveries)_g[0-9]+|(attempts|listens)_[0-9]{8})$'
                 OR c.relispartition
                    AND EXISTS (SELECT FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent
                                 WHERE i.inhrelid = c.oid AND p.relnamespace = c.relnamespace
                                   AND p.relname = ANY(%(tables)s)))
            OR c.relkind = 'S' AND c.relname = ANY(%(sequences)s))
), found (class, id) AS (
    SELECT 'pg_class'::regclass, c.oid
      FROM pg_class c
     WHERE c.relnamespace = to_regnamespace('public') AND c.oid NOT IN (SELECT oid FROM ours)
       AND (c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c')
            OR c.relkind = 'S' AND NOT EXISTS (SELECT FROM pg_depend d
                                                WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                                                  AND d.deptype IN ('a', 'i')))
    UNION
    SELECT 'pg_proc'::regclass, p.oid
      FROM pg_proc p
     WHERE p.pronamespace = to_regnamespace('public') AND p.proname <> ALL(%(functions)s)
    UNION
    SELECT 'pg_type'::regclass, t.oid
      FROM pg_type t
     WHERE t.typnamespace = to_regnamespace('public') AND t.typtype IN ('d', 'e', 'r')
    UNION
    SELECT 'pg_trigger'::regclass, t.oid
      FROM pg_trigger t
     WHERE t.tgrelid IN (SELECT oid FROM ours) AND NOT t.tgisinternal
    UNION -- views, in any schema
    SELECT 'pg_class'::regclass, r.ev_class
      FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
     WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
       AND d.refobjid IN (SELECT oid FROM ours) AND r.ev_class NOT IN (SELECT oid FROM ours)
)
SELECT pg_describe_object(f.class, f.id, 0)
  FROM found f
 WHERE NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = f.class AND d.objid = f.id AND d.deptype = 'e')
 ORDER BY 1

-- name: grantees
-- Roles other than the owner with rights on the hub's tables and sequences.
SELECT DISTINCT coalesce(nullif(g.grantee, 0)::regrole::text, 'PUBLIC')
  FROM pg_class c, aclexplode(c.relacl) g
 WHERE c.relnamespace = to_regnamespace('public') AND c.relname !~ '^(auth|django)_'
   AND c.relkind IN ('r', 'p', 'S') AND g.grantee <> c.relowner
 ORDER BY 1

-- name: relations
-- The hub's tables in a schema, and its sequences, without those of columns, which belong to their
-- tables.
SELECT c.relname, c.relkind = 'S'
  FROM pg_class c
 WHERE c.relnamespace = to_regnamespace(%s) AND c.relname !~ '^(auth|django)_'
   AND (c.relkind IN ('r', 'p')
        OR c.relkind = 'S' AND NOT EXISTS (SELECT FROM pg_depend d
                                            WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass
                                              AND d.deptype IN ('a', 'i')))
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')

-- name: functions
SELECT p.oid::regprocedure::text
  FROM pg_proc p
 WHERE p.pronamespace = to_regnamespace('public')
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e')

-- name: tables
-- Each table with the tables that it references.
SELECT c.relname, ARRAY(SELECT f.relname FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
                         WHERE k.conrelid = c.oid AND k.contype = 'f' AND f.oid <> c.oid)::text[]
  FROM pg_class c
 WHERE c.relnamespace = to_regnamespace('public') AND c.relkind IN ('r', 'p') AND NOT c.relispartition
   AND c.relname !~ '^(auth|django)_' AND c.relname <> 'schema_digests'
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')
 ORDER BY c.relname

-- name: columns
SELECT a.attname, format_type(a.atttypid, NULL)
  FROM pg_attribute a
 WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum

-- name: endpoint_secrets
-- In tables from before, an endpoint has its only secret in its own row.
INSERT INTO endpoint_secrets (endpoint_id, kind, sealed, created_at)
SELECT id, 'v1', secret, created_at FROM endpoints WHERE deleted_at IS NULL

-- name: partitions
-- The present names of a table's partitions, and their bounds, for those that do not exist yet.
SELECT n.name, pg_get_expr(c.relpartbound, c.oid)
  FROM pg_inherits i
  JOIN pg_class c ON c.oid = i.inhrelid,
       LATERAL (SELECT regexp_replace(overlay(c.relname PLACING %(new)s FROM 1 FOR length(%(old)s)), '_g([0-9]+)$', '_p\1')
                    AS name) AS n
 WHERE i.inhparent = to_regclass(%(parent)s) AND to_regclass('public.' || n.name) IS NULL
 ORDER BY n.name

-- name: detached_partitions
-- Detached partitions, whose rows are not archived yet.
SELECT c.relname, substring(c.relname FROM '^([a-z]+)_')
  FROM pg_class c
 WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind = 'r' AND NOT c.relispartition
   AND c.relname ~ '^(deliveries_g[0-9]+|(attempts|listens)_[0-9]{8})$'
 ORDER BY c.relname
