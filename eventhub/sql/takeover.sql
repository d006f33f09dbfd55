-- Taking over a database of before 0.1 (takeover.py).

-- name: relations
-- The hub's tables, and its sequences but those of columns, which go with their tables.
SELECT c.relname, c.relkind = 'S'
  FROM pg_class c
 WHERE c.relnamespace = to_regnamespace('public') AND c.relname !~ '^(auth|django)_'
   AND (c.relkind IN ('r', 'p')
        OR c.relkind = 'S' AND NOT EXISTS (SELECT FROM pg_depend d
                                            WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass
                                              AND d.deptype IN ('a', 'i')))

-- name: functions
SELECT p.oid::regprocedure::text
  FROM pg_proc p
 WHERE p.pronamespace = to_regnamespace('public')
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')

-- name: tables
-- Each with the others that it refers to.
SELECT c.relname, ARRAY(SELECT f.relname FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
                         WHERE k.conrelid = c.oid AND k.contype = 'f' AND f.oid <> c.oid)::text[]
  FROM pg_class c
 WHERE c.relnamespace = to_regnamespace('public') AND c.relkind IN ('r', 'p') AND NOT c.relispartition
   AND c.relname !~ '^(auth|django)_' AND c.relname <> 'schema_digests'
 ORDER BY c.relname

-- name: columns
SELECT a.attname, format_type(a.atttypid, NULL)
  FROM pg_attribute a
 WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum

-- name: partitions
-- What the partitions of a table are called now, and which rows they hold, as far as they are not there.
SELECT n.name, pg_get_expr(c.relpartbound, c.oid)
  FROM pg_inherits i
  JOIN pg_class c ON c.oid = i.inhrelid,
       LATERAL (SELECT regexp_replace(overlay(c.relname PLACING %(new)s FROM 1 FOR length(%(old)s)), '_g([0-9]+)$', '_p\1')
                    AS name) AS n
 WHERE i.inhparent = to_regclass(%(parent)s) AND to_regclass('public.' || n.name) IS NULL
 ORDER BY n.name

-- name: left_behind
-- Tables that are no partition of anything any more: what is in them has not been archived yet.
SELECT c.relname, substring(c.relname FROM '^([a-z]+)_')
  FROM pg_class c
 WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind = 'r' AND NOT c.relispartition
   AND c.relname ~ '^(deliveries_g[0-9]+|(attempts|listens)_[0-9]{8})$'
 ORDER BY c.relname
