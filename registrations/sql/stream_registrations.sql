-- Some registrations in one stream: those that are named, and those of sessions and session groups. `{owned}`: the statement of that
-- name. `{ids}`: their ids, `{groups}`: those of their groups, both arrays.

-- name: owned
-- The registrations of sessions and session groups, live or ended: each of their versions is in one of the owner's groups.
SELECT DISTINCT g.session_id, g.session_group_id, v.registration_id
  FROM registration_groups g
  JOIN registration_versions v ON v.group_id = g.id
 WHERE g.session_id = ANY (%(sessions)s::bigint[]) OR g.session_group_id = ANY (%(session_groups)s::bigint[])

-- name: ids
-- The ids of these registrations, and of those that are named.
SELECT o.registration_id FROM ({owned}) AS o
 UNION
SELECT unnest(%(registrations)s::bigint[])

-- name: groups
SELECT group_id FROM registration_versions WHERE registration_id = ANY ({ids})

-- name: versions
-- Versions with the columns of `versions` in catalog.sql, with an endpoint or without, that can apply to an event after a sequence;
-- at most `versions_max`. Whichever plan is chosen, only versions of these registrations are read, so it is planned once.
WITH chosen AS MATERIALIZED (
    SELECT v.*
      FROM unnest({ids}) AS k (id)
     CROSS JOIN LATERAL (SELECT * FROM registration_versions w WHERE w.registration_id = k.id OFFSET 0) AS v
     WHERE %(stream_id)s = ANY (v.streams)
), bounds AS MATERIALIZED (
    SELECT b.id, b.sequences[array_position(b.streams, %(stream_id)s)] AS sequence
      FROM (SELECT from_barrier AS id FROM chosen UNION SELECT until_barrier FROM chosen) AS k JOIN barriers b ON b.id = k.id
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
 WHERE u.id IS NULL OR (u.sequence > %(after)s AND u.sequence > f.sequence)
 LIMIT %(versions_max)s

-- name: parents
SELECT id AS group_id, parent_id FROM registration_groups WHERE id = ANY ({groups}) AND parent_id IS NOT NULL
