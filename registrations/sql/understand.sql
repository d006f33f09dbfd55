-- Registrations as they stand to one event: who matched it, who nearly did, and why.

-- name: standing
-- Versions of live registrations of a zone that name a stream, after a registration and so many: those that held for an
-- event of it, and the current ones. Where a value is given, of one client, or one registration. A group is suspended for
-- the event if one of its suspensions was under way; a stream that is not in its barriers had none of its registrations.
SELECT r.id, c.name, c.groups::text, v.number, v.endpoint_id, v.language, v.filter::text,
       COALESCE(f.sequence, 0), u.sequence, v.until_barrier IS NULL, v.suspended, g.name,
       EXISTS (SELECT FROM suspensions s
                 JOIN barriers b ON b.id = s.from_barrier
                 LEFT JOIN barriers e ON e.id = s.until_barrier
                WHERE s.group_id = v.group_id
                  AND COALESCE(b.sequences[array_position(b.streams, %(stream_id)s)], 0) < %(sequence)s
                  AND (e.id IS NULL OR e.sequences[array_position(e.streams, %(stream_id)s)] >= %(sequence)s)),
       ARRAY(SELECT x.name FROM streams x WHERE x.id = ANY (v.streams))
  FROM registration_versions v
  JOIN registrations r ON r.id = v.registration_id AND r.deleted_at IS NULL AND r.zone_id = %(zone_id)s
  JOIN clients c ON c.id = r.client_id
  LEFT JOIN registration_groups g ON g.id = v.group_id
 CROSS JOIN LATERAL (
    SELECT sequences[array_position(streams, %(stream_id)s)] AS sequence FROM barriers WHERE id = v.from_barrier
 ) AS f
  LEFT JOIN LATERAL (
    SELECT sequences[array_position(streams, %(stream_id)s)] AS sequence FROM barriers WHERE id = v.until_barrier
 ) AS u ON true
 WHERE v.streams @> ARRAY[%(stream_id)s]::bigint[]
   AND v.registration_id > %(after)s
   AND (%(client_id)s::bigint IS NULL OR r.client_id = %(client_id)s)
   AND (%(registration)s::bigint IS NULL OR v.registration_id = %(registration)s)
   AND (v.until_barrier IS NULL OR (COALESCE(f.sequence, 0) < %(sequence)s AND %(sequence)s <= u.sequence))
 ORDER BY v.registration_id, v.number
 LIMIT %(versions_max)s

-- name: equal
-- A live registration that asks for the same: the digest holds the client, the streams and the filter's normal form.
SELECT registration_id FROM registration_versions
 WHERE digest = %s AND until_barrier IS NULL
 ORDER BY registration_id
 LIMIT 1
