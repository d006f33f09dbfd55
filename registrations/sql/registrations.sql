-- Creating, changing, ending and listing registrations; their groups and endpoints, under the locks of registrations.

-- name: lock_client
-- Keeps the client from being deleted meanwhile.
SELECT id FROM clients WHERE id = %s AND deleted_at IS NULL FOR SHARE

-- name: lock_owner
-- Locks the client's row, inserting it if absent; returns the number of its live registrations.
INSERT INTO registration_owners (client_id) VALUES (%s)
    ON CONFLICT (client_id) DO UPDATE SET registrations = registration_owners.registrations
RETURNING registrations

-- name: count_registrations
UPDATE registration_owners SET registrations = registrations + %s WHERE client_id = %s

-- name: streams_by_name
SELECT s.id, s.name, s.durability = 'transient' AS transient, s.matching,
       (extract(epoch FROM least(s.deletes_at, z.deletes_at)) * 1000000)::bigint AS deletes_at_us
  FROM streams s LEFT JOIN zones z ON z.id = s.zone_id
 WHERE (s.zone_id = %s OR s.zone_id IS NULL) AND s.name = ANY (%s) AND s.deleted_at IS NULL

-- name: stream_names
SELECT id, name FROM streams WHERE id = ANY (%s)

-- name: streams_without_data
SELECT id FROM streams WHERE id = ANY (%s) AND NOT filterable_data

-- name: new_barrier
INSERT INTO barriers (streams, segments, sequences) VALUES ('{}', '{}', '{}') RETURNING id

-- name: count_groups_at
-- Updates the numbers of live registrations of groups, in total and by stream, by the versions that begin and end at a
-- barrier; run once for each barrier. The lock of the client excludes concurrent updates.
WITH moved AS MATERIALIZED (
    SELECT group_id, streams, 1 AS more FROM registration_versions
     WHERE from_barrier = %(barrier)s AND group_id IS NOT NULL
    UNION ALL
    SELECT group_id, streams, -1 FROM registration_versions
     WHERE until_barrier = %(barrier)s AND group_id IS NOT NULL
), counted AS (
    UPDATE registration_groups g SET registrations = g.registrations + n.more
      FROM (SELECT group_id, sum(more) AS more FROM moved GROUP BY group_id HAVING sum(more) <> 0) AS n
     WHERE g.id = n.group_id
)
INSERT INTO group_streams AS g (group_id, stream_id, registrations)
SELECT m.group_id, s.id, sum(m.more) FROM moved m, unnest(m.streams) AS s (id) GROUP BY m.group_id, s.id
    ON CONFLICT (group_id, stream_id) DO UPDATE SET registrations = g.registrations + excluded.registrations

-- name: fill_barrier
-- Locks the heads in the common order. A transient stream has no head here, and no position in the vector. A head that moved
-- while the statement waited for its lock is read again.
WITH locked AS MATERIALIZED (
    SELECT stream_id, segment, sequence FROM heads
     WHERE stream_id = ANY (%(streams)s::bigint[]) ORDER BY stream_id FOR SHARE
), vector AS (
    SELECT COALESCE(array_agg(stream_id ORDER BY stream_id), '{}') AS streams,
           COALESCE(array_agg(segment ORDER BY stream_id), '{}') AS segments,
           COALESCE(array_agg(sequence ORDER BY stream_id), '{}') AS sequences
      FROM locked
)
UPDATE barriers b SET streams = v.streams, segments = v.segments, sequences = v.sequences
  FROM vector v WHERE b.id = %(barrier)s
RETURNING b.streams, b.segments::text[] AS segments, b.sequences

-- name: insert
-- Ids ascend in the order given.
INSERT INTO registrations (zone_id, client_id, key, session_id, session_group_id)
SELECT %(zone_id)s, %(client_id)s, key, session_id, session_group_id
  FROM unnest(%(keys)s::text[], %(sessions)s::bigint[], %(session_groups)s::bigint[])
       WITH ORDINALITY AS g (key, session_id, session_group_id, n)
 ORDER BY n
RETURNING id

-- name: insert_versions
INSERT INTO registration_versions
       (registration_id, number, streams, language, filter, endpoint_id, suspended, group_id, report, variable, digest,
        from_barrier)
SELECT registration_id, number, streams::bigint[], language, filter::json, endpoint_id, suspended <> 0, group_id,
       report::json, variable, digest::uuid, %(barrier)s
  FROM unnest(%(registrations)s::bigint[], %(numbers)s::bigint[], %(streams)s::text[], %(languages)s::text[],
              %(filters)s::text[], %(endpoints)s::bigint[], %(suspended)s::bigint[], %(groups)s::bigint[],
              %(reports)s::text[], %(variables)s::text[], %(digests)s::text[])
       WITH ORDINALITY AS g (registration_id, number, streams, language, filter, endpoint_id, suspended, group_id, report,
                             variable, digest, n)
 ORDER BY n

-- name: owner
-- The client of a live registration in a zone; only if it is the given one, if any.
SELECT client_id FROM registrations
 WHERE id = %(id)s AND zone_id = %(zone_id)s AND deleted_at IS NULL
   AND (%(client_id)s::bigint IS NULL OR client_id = %(client_id)s)

-- name: lock_registrations
SELECT id FROM registrations WHERE id = ANY (%s::bigint[]) AND deleted_at IS NULL ORDER BY id FOR UPDATE

-- name: live_of_client
SELECT id FROM registrations WHERE client_id = %s AND deleted_at IS NULL

-- name: end_versions
-- Also deletes their costs from the client's budget.
WITH forgotten AS (
    DELETE FROM expensive_filters WHERE registration_id = ANY (%(registrations)s::bigint[])
), ended AS (
    UPDATE registration_versions SET until_barrier = %(barrier)s
     WHERE registration_id = ANY (%(registrations)s::bigint[]) AND until_barrier IS NULL
    RETURNING streams
)
SELECT DISTINCT unnest(streams) FROM ended

-- name: end_registrations
UPDATE registrations SET deleted_at = now() WHERE id = ANY (%(ids)s::bigint[])

-- name: by_key
-- The registration that each key of a client names: the live one, else the last ended one.
SELECT DISTINCT ON (key) key, id, deleted_at IS NULL AS live
  FROM registrations
 WHERE client_id = %s AND key = ANY (%s::text[])
 ORDER BY key, deleted_at IS NULL DESC, id DESC

-- name: own
SELECT key, id, deleted_at IS NULL AS live FROM registrations WHERE client_id = %s AND id = ANY (%s::bigint[])

-- name: few_streams
-- The streams of a zone that an actor may listen to; null if there are more than `most`.
WITH found AS (
    SELECT id FROM streams
     WHERE (zone_id = %(zone_id)s OR zone_id IS NULL) AND deleted_at IS NULL
       AND CASE WHEN name = 'system' THEN %(system)s ELSE name LIKE ANY (%(patterns)s::text[]) END
     LIMIT %(most)s + 1
)
SELECT CASE WHEN count(*) <= %(most)s THEN COALESCE(array_agg(id), '{}') END FROM found

-- name: search
-- Live registrations all of whose streams the actor may listen to: by patterns (null: all streams), and `system`. `few`, if not
-- null, has all these streams, so that the index finds their registrations.
SELECT r.id, c.name AS client, v.streams, v.language, v.filter::text AS filter_json, v.endpoint_id, e.url,
       v.number, (extract(epoch FROM r.created_at) * 1000000)::bigint AS created_at_us, v.from_barrier AS barrier, r.key,
       v.suspended, v.group_id, CASE WHEN NOT g.root THEN g.name END AS group, v.report::text AS report_json, same.id AS equal_to,
       r.session_id, r.session_group_id, s.name AS session, m.name AS session_group,
       CASE WHEN g.root THEN g.id ELSE g.parent_id END AS root_id
  FROM registrations r
  JOIN clients c ON c.id = r.client_id
  JOIN registration_versions v ON v.registration_id = r.id AND v.until_barrier IS NULL
  LEFT JOIN endpoints e ON e.id = v.endpoint_id
  LEFT JOIN registration_groups g ON g.id = v.group_id
  LEFT JOIN sessions s ON s.id = r.session_id
  LEFT JOIN session_groups m ON m.id = r.session_group_id
  LEFT JOIN LATERAL (
    SELECT w.registration_id AS id FROM registration_versions w
     WHERE w.digest = v.digest AND w.until_barrier IS NULL AND w.registration_id <> r.id
     ORDER BY w.registration_id
     LIMIT 1
  ) AS same ON true
 WHERE r.deleted_at IS NULL AND r.id > %(after)s
   AND (%(zone_id)s::bigint IS NULL OR r.zone_id = %(zone_id)s)
   AND (%(client_id)s::bigint IS NULL OR r.client_id = %(client_id)s)
   AND (%(ids)s::bigint[] IS NULL OR r.id = ANY (%(ids)s))
   AND (%(endpoint)s::bigint IS NULL OR v.endpoint_id = %(endpoint)s)
   AND (%(group)s::text IS NULL OR g.name = %(group)s)
   AND (%(session)s::text IS NULL OR s.name = %(session)s)
   AND (%(session_group)s::text IS NULL OR m.name = %(session_group)s)
   AND (%(suspended)s::boolean IS NULL OR v.suspended = %(suspended)s)
   AND (%(key)s::text IS NULL OR r.key = %(key)s)
   AND (%(stream_id)s::bigint IS NULL OR v.streams @> ARRAY[%(stream_id)s]::bigint[])
   AND (%(few)s::bigint[] IS NULL OR v.streams && %(few)s::bigint[])
   AND (%(system)s AND %(patterns)s::text[] IS NULL OR NOT EXISTS (
        SELECT FROM streams x
         WHERE x.id = ANY (v.streams)
           AND NOT CASE WHEN x.name = 'system' THEN %(system)s
                        ELSE %(patterns)s::text[] IS NULL OR x.name LIKE ANY (%(patterns)s::text[]) END))
 ORDER BY r.id
 LIMIT %(items_max)s

-- name: barrier_positions
SELECT b.id AS barrier, p.stream_id, p.segment::text AS segment, p.sequence
  FROM barriers b, unnest(b.streams, b.segments, b.sequences) AS p (stream_id, segment, sequence)
 WHERE b.id = ANY (%s) AND p.stream_id = ANY (%s)

-- name: lock_groups
-- Groups by name and roots of sessions by id, with the sessions that they belong to. Keeps them, and the parents of the groups,
-- from being suspended, resumed or deleted before the registrations that name them are committed. A parent has a lower id.
WITH named AS MATERIALIZED (
    SELECT id, parent_id FROM registration_groups
     WHERE client_id = %(client_id)s AND name = ANY (%(names)s::text[]) AND deleted_at IS NULL
    UNION
    SELECT id, NULL FROM registration_groups
     WHERE client_id = %(client_id)s AND id = ANY (%(roots)s::bigint[]) AND deleted_at IS NULL
)
SELECT name, id, session_id, session_group_id FROM registration_groups
 WHERE id IN (SELECT id FROM named UNION SELECT parent_id FROM named) AND deleted_at IS NULL
 ORDER BY id FOR SHARE

-- name: delete_groups
UPDATE registration_groups SET deleted_at = now() WHERE client_id = %s AND deleted_at IS NULL

-- name: lock_endpoints
-- Keeps them from being deleted before the registrations that name them are committed.
SELECT id, url FROM endpoints
 WHERE client_id = %(client_id)s AND deleted_at IS NULL
   AND (id = ANY (%(ids)s::bigint[]) OR url = ANY (%(urls)s::text[]))
 ORDER BY id FOR SHARE

-- name: endpoints_of_client
SELECT id FROM endpoints WHERE client_id = %s AND deleted_at IS NULL ORDER BY id

-- name: delete_endpoints
WITH tokens AS (
    DELETE FROM endpoint_tokens WHERE endpoint_id = ANY (%(ids)s)
), verifications AS (
    DELETE FROM endpoint_verifications WHERE endpoint_id = ANY (%(ids)s)
), secrets AS (
    DELETE FROM endpoint_secrets WHERE endpoint_id = ANY (%(ids)s)
)
UPDATE endpoints SET deleted_at = now(), changed_at = now(), enabled = false, secret = '' WHERE id = ANY (%(ids)s)
