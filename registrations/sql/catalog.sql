-- Versions of registrations for matchers: those of one stream, with their bounds as sequences of that stream.

-- name: raise_work_mem
-- For one transaction, so that 100,000 versions are joined in memory.
SET LOCAL work_mem = '64MB'

-- name: versions
-- The versions of one stream with an endpoint whose registration is not itself suspended. With `after`, only those that can apply
-- to an event after that sequence. Each barrier is unpacked once for all of its versions; transient streams have no position in
-- it. The zone's name is set if the stream is `system` (id 1).
WITH chosen AS NOT MATERIALIZED (
    SELECT id, registration_id, endpoint_id, language, filter, suspended, group_id, report, variable, from_barrier,
           until_barrier
      FROM registration_versions
     WHERE streams @> ARRAY[%(stream_id)s]::bigint[]
       AND endpoint_id IS NOT NULL AND NOT suspended
), bounds AS MATERIALIZED (
    SELECT id, sequences[array_position(streams, %(stream_id)s)] AS sequence FROM barriers
     WHERE id IN (SELECT from_barrier FROM chosen UNION SELECT until_barrier FROM chosen)
)
SELECT v.id, v.registration_id AS registration, c.name AS client, v.endpoint_id, COALESCE(f.sequence, 0) AS since,
       u.sequence AS until, v.language, v.filter::text AS filter_json,
       CASE WHEN %(stream_id)s = 1 THEN (SELECT name FROM zones z WHERE z.id = r.zone_id) END AS zone,
       v.suspended, v.group_id AS "group", v.report::text, v.variable, c.id AS client_id
  FROM chosen v
  JOIN registrations r ON r.id = v.registration_id
  JOIN clients c ON c.id = r.client_id
  JOIN bounds f ON f.id = v.from_barrier
  LEFT JOIN bounds u ON u.id = v.until_barrier
 WHERE %(after)s::bigint IS NULL OR u.id IS NULL OR (u.sequence > %(after)s AND u.sequence > f.sequence)

-- name: versions_changed
-- The same columns of versions of a stream that begin or end at some barriers: at those given, else at all barriers that a
-- snapshot whose oldest open transaction was `xmin` may not have seen. Barriers with transaction ids in the future came with a
-- dump and are excluded. `others` are ids of further versions. The statement reads no table and no index over all of a stream's
-- registrations for a few of them, whichever plan is chosen.
WITH moved AS MATERIALIZED (
    SELECT id FROM barriers
     WHERE (%(barriers)s::bigint[] IS NULL OR id = ANY (%(barriers)s::bigint[]))
       AND (%(xmin)s::text IS NULL
            OR xid >= %(xmin)s::text::xid8 AND xid < pg_snapshot_xmax(pg_current_snapshot())
               AND streams @> ARRAY[%(stream_id)s]::bigint[])
), chosen AS MATERIALIZED (
    SELECT v.id FROM moved m JOIN registration_versions v ON v.from_barrier = m.id
    UNION
    SELECT v.id FROM moved m JOIN registration_versions v ON v.until_barrier = m.id
    UNION
    SELECT unnest(%(others)s::bigint[])
)
SELECT v.id, v.registration_id AS registration, c.name AS client, v.endpoint_id,
       COALESCE(f.sequences[array_position(f.streams, %(stream_id)s)], 0) AS since,
       u.sequences[array_position(u.streams, %(stream_id)s)] AS until, v.language, v.filter::text AS filter_json,
       CASE WHEN %(stream_id)s = 1 THEN (SELECT name FROM zones z WHERE z.id = r.zone_id) END AS zone,
       v.suspended, v.group_id AS "group", v.report::text, v.variable, c.id AS client_id
  FROM chosen
 CROSS JOIN LATERAL (SELECT * FROM registration_versions w WHERE w.id = chosen.id OFFSET 0) AS v
  JOIN registrations r ON r.id = v.registration_id
  JOIN clients c ON c.id = r.client_id
  JOIN barriers f ON f.id = v.from_barrier
  LEFT JOIN barriers u ON u.id = v.until_barrier
 WHERE %(stream_id)s = ANY (v.streams) AND v.endpoint_id IS NOT NULL AND NOT v.suspended

-- name: ended_since
-- The ended ones of such versions: the id, and the last sequence that each applies to.
SELECT v.id, b.sequences[array_position(b.streams, %(stream_id)s)] AS until
  FROM barriers b
  JOIN registration_versions v ON v.until_barrier = b.id
 WHERE b.xid >= %(xmin)s::text::xid8 AND b.xid < pg_snapshot_xmax(pg_current_snapshot())
   AND b.streams @> ARRAY[%(stream_id)s]::bigint[]
   AND %(stream_id)s = ANY (v.streams) AND v.endpoint_id IS NOT NULL AND NOT v.suspended

-- name: moment
-- A stream in this snapshot: see registrations/match_index/epochs/facts.py. `after` is the position of its forwarder.
SELECT system.sequence AS system, l.history::text, pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin, s.matching AS strategy,
       s.durability, COALESCE(f.sequence, 0) AS after, COALESCE(p.xid::text::bigint, 0) AS purged
  FROM log_state l
  JOIN heads system ON system.stream_id = 1
  JOIN streams s ON s.id = %s
  LEFT JOIN forwarding f ON f.stream_id = s.id
  LEFT JOIN purged_versions p ON p.stream_id = s.id AND p.history = l.history

-- name: client_names
SELECT id, name FROM clients WHERE id = ANY (%s::bigint[])

-- name: suspensions
-- The suspensions of some groups (`{groups}`: their ids, an array) and of their parents, as sequences of one stream, that can cover an event after a sequence; the
-- latest first. Those of a parent are returned for the group and for the parent. A stream without a position in a barrier had
-- none of the group's registrations before it: a suspension that starts there covers the stream from its beginning; one that
-- ends there covers nothing. On a transient stream only current suspensions count. A group without any has one row without
-- positions.
WITH named AS MATERIALIZED (
    SELECT id, parent_id FROM registration_groups WHERE id = ANY ({groups})
), covered AS (
    SELECT id AS group_id, id AS suspended_id FROM named
    UNION
    SELECT id, parent_id FROM named WHERE parent_id IS NOT NULL
    UNION
    SELECT parent_id, parent_id FROM named WHERE parent_id IS NOT NULL
)
SELECT c.group_id, found.since, found.until
  FROM covered c
  LEFT JOIN LATERAL (
    SELECT s.id, COALESCE(f.sequences[array_position(f.streams, %(stream_id)s)], 0) AS since,
           u.sequences[array_position(u.streams, %(stream_id)s)] AS until
      FROM suspensions s
      JOIN barriers f ON f.id = s.from_barrier
      LEFT JOIN barriers u ON u.id = s.until_barrier
     WHERE s.group_id = c.suspended_id
       AND (u.id IS NULL OR u.sequences[array_position(u.streams, %(stream_id)s)] > %(after)s)
  ) AS found ON true
 ORDER BY found.id DESC NULLS LAST

-- name: strategy
SELECT matching FROM streams WHERE id = %s

-- name: streams_with_callbacks
-- Streams other than the known ones, each with the lowest position from which a version with an endpoint applies. With `xmin`:
-- only streams with such a version that a snapshot whose oldest open transaction was `xmin` may not have seen.
SELECT s.id AS stream_id, first.segment::text, first.sequence
  FROM streams s
 CROSS JOIN LATERAL (
    SELECT b.segments[array_position(b.streams, s.id)] AS segment,
           b.sequences[array_position(b.streams, s.id)] AS sequence
      FROM barriers b
     WHERE b.id IN (SELECT v.from_barrier FROM registration_versions v
                     WHERE v.streams @> ARRAY[s.id] AND v.endpoint_id IS NOT NULL)
     ORDER BY 2
     LIMIT 1
 ) AS first
 WHERE s.id <> ALL (%(known)s) AND s.durability <> 'transient' AND s.deleted_at IS NULL
   AND (%(xmin)s::text IS NULL
        OR s.id IN (SELECT unnest(v.streams)
                      FROM barriers b
                      JOIN registration_versions v ON v.from_barrier = b.id AND v.endpoint_id IS NOT NULL
                     WHERE b.xid >= %(xmin)s::text::xid8 AND b.xid < pg_snapshot_xmax(pg_current_snapshot())))
 ORDER BY s.id

-- name: xmin
SELECT pg_snapshot_xmin(pg_current_snapshot())::text

-- name: live_registrations
-- The current versions of some registrations of a client.
SELECT r.id, v.streams
  FROM registrations r
  JOIN registration_versions v ON v.registration_id = r.id AND v.until_barrier IS NULL
 WHERE r.id = ANY (%(registrations)s) AND r.client_id = %(client_id)s AND r.deleted_at IS NULL
 ORDER BY r.id
