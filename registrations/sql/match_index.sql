-- The state of match indexes relative to the tables. catalog.sql reads the versions.

-- name: settle
-- A commit that waits for the disk: then every transaction that an earlier snapshot saw is on disk, so that none of its numbers
-- is assigned again after a crash.
SELECT pg_logical_emit_message(true, 'eventhub', 'match index')

-- name: count
-- Count the live versions of a stream, up to a bound.
SELECT count(*)
  FROM (SELECT FROM registration_versions
         WHERE streams @> ARRAY[%(stream_id)s]::bigint[] AND endpoint_id IS NOT NULL AND NOT suspended
           AND until_barrier IS NULL
         LIMIT %(bound)s) AS v

-- name: count_changed
-- Count the versions that started or ended, or may have, since a snapshot whose oldest open transaction was `xmin`, up to a bound.
WITH moved AS MATERIALIZED (
    SELECT id FROM barriers
     WHERE xid >= %(xmin)s::text::xid8 AND xid < pg_snapshot_xmax(pg_current_snapshot())
       AND streams @> ARRAY[%(stream_id)s]::bigint[]
), changed AS (
    SELECT FROM moved m JOIN registration_versions v ON v.from_barrier = m.id
     WHERE %(stream_id)s = ANY (v.streams) AND v.endpoint_id IS NOT NULL AND NOT v.suspended
    UNION ALL
    SELECT FROM moved m JOIN registration_versions v ON v.until_barrier = m.id
     WHERE %(stream_id)s = ANY (v.streams) AND v.endpoint_id IS NOT NULL AND NOT v.suspended
       AND NOT EXISTS (SELECT FROM barriers b
                        WHERE b.id = v.from_barrier AND b.xid >= %(xmin)s::text::xid8
                          AND b.xid < pg_snapshot_xmax(pg_current_snapshot()))
     LIMIT %(bound)s
)
SELECT count(*) FROM changed

-- name: forwarded_streams
-- The streams that may use an index: forwarded, with a strategy that uses one.
SELECT s.id
  FROM streams s JOIN forwarding f ON f.stream_id = s.id
 WHERE s.id <> 1 AND s.matching = ANY (%s) AND s.durability <> 'transient'
 ORDER BY s.id

-- name: bounds
-- Which versions started, and ended, in transactions that a snapshot certainly saw whose oldest open transaction was `xmin`.
SELECT v.id, f.xid < %(xmin)s::text::xid8 AS began, COALESCE(u.xid < %(xmin)s::text::xid8, false) AS ended
  FROM registration_versions v
  JOIN barriers f ON f.id = v.from_barrier
  LEFT JOIN barriers u ON u.id = v.until_barrier
 WHERE v.id = ANY (%(versions)s::bigint[])
