-- Versions of registrations and their status for one event.

-- name: registrations_naming
-- A page of the live registrations of a zone, or of one client, with a version that names a stream. The tables are read once
-- for all pages of a search, in the worst case as a whole.
SELECT DISTINCT v.registration_id
  FROM registration_versions v
  JOIN registrations r ON r.id = v.registration_id AND r.deleted_at IS NULL AND r.zone_id = %(zone_id)s
 WHERE v.streams @> ARRAY[%(stream_id)s]::bigint[]
   AND v.registration_id > %(after)s
   AND (%(client_id)s::bigint IS NULL OR r.client_id = %(client_id)s)
 ORDER BY v.registration_id
 LIMIT %(count)s

-- name: version_statuses
-- Versions of some live registrations of a zone, or of one client, that name a stream: those that applied to an event of it,
-- and the current ones. A group is suspended for the event if the event is within one of its suspensions, or of its parent's; a
-- stream that is not in its barriers had none of its registrations. OFFSET 0 makes the planner look up each registration by id, even if its
-- statistics of the stream are wrong, as they are after a bulk load.
SELECT r.id AS registration, c.name AS client, ARRAY(SELECT jsonb_array_elements_text(c.groups)) AS groups, v.number, v.endpoint_id, v.language,
       v.filter::text AS filter_json, COALESCE(f.sequence, 0) AS since, u.sequence AS until, v.until_barrier IS NULL AS current,
       v.suspended, g.name AS group,
       EXISTS (SELECT FROM suspensions s
                 JOIN barriers b ON b.id = s.from_barrier
                 LEFT JOIN barriers e ON e.id = s.until_barrier
                WHERE s.group_id IN (g.id, g.parent_id)
                  AND COALESCE(b.sequences[array_position(b.streams, %(stream_id)s)], 0) < %(sequence)s
                  AND (e.id IS NULL OR e.sequences[array_position(e.streams, %(stream_id)s)] >= %(sequence)s)) AS group_suspended,
       ARRAY(SELECT x.name FROM streams x WHERE x.id = ANY (v.streams)) AS streams
  FROM unnest(%(registrations)s::bigint[]) AS requested (id)
 CROSS JOIN LATERAL (SELECT * FROM registration_versions WHERE registration_id = requested.id OFFSET 0) AS v
  JOIN registrations r ON r.id = requested.id AND r.deleted_at IS NULL AND r.zone_id = %(zone_id)s
  JOIN clients c ON c.id = r.client_id
  LEFT JOIN registration_groups g ON g.id = v.group_id
 CROSS JOIN LATERAL (
    SELECT sequences[array_position(streams, %(stream_id)s)] AS sequence FROM barriers WHERE id = v.from_barrier
 ) AS f
  LEFT JOIN LATERAL (
    SELECT sequences[array_position(streams, %(stream_id)s)] AS sequence FROM barriers WHERE id = v.until_barrier
 ) AS u ON true
 WHERE v.streams @> ARRAY[%(stream_id)s]::bigint[]
   AND (%(client_id)s::bigint IS NULL OR r.client_id = %(client_id)s)
   AND (v.until_barrier IS NULL OR (COALESCE(f.sequence, 0) < %(sequence)s AND %(sequence)s <= u.sequence))
 ORDER BY v.registration_id, v.number
