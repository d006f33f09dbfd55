-- The interest in a stream, for producers: filters of live registrations and of listeners.

-- name: filters
-- A chunk of the filters of live registrations that are not suspended; with an audience, only of clients in one of its groups.
SELECT v.id, v.language, v.filter::text
  FROM registration_versions v
  JOIN registrations r ON r.id = v.registration_id AND r.deleted_at IS NULL
  JOIN clients c ON c.id = r.client_id
 WHERE v.id > %(after)s
   AND v.streams @> ARRAY[%(stream_id)s]::bigint[] AND v.until_barrier IS NULL AND NOT v.suspended
   AND (%(audience)s::text[] IS NULL OR jsonb_exists_any(c.groups, %(audience)s::text[]))
   AND NOT EXISTS (SELECT FROM registration_groups g JOIN suspensions s ON s.group_id IN (g.id, g.parent_id)
                    WHERE g.id = v.group_id AND s.until_barrier IS NULL)
 ORDER BY v.id
 LIMIT %(count)s

-- name: added
-- The same of registrations that started at some barriers, or whose group, or its parent, was resumed there.
SELECT v.language, v.filter::text
  FROM registration_versions v
  JOIN registrations r ON r.id = v.registration_id AND r.deleted_at IS NULL
  JOIN clients c ON c.id = r.client_id
 WHERE v.id IN (SELECT n.id FROM registration_versions n WHERE n.from_barrier = ANY (%(barriers)s::bigint[])
                 UNION
                SELECT n.id
                  FROM suspensions x
                  JOIN registration_groups g ON g.id = x.group_id OR g.parent_id = x.group_id
                  JOIN registration_versions n ON n.group_id = g.id
                 WHERE x.until_barrier = ANY (%(barriers)s::bigint[]))
   AND v.streams @> ARRAY[%(stream_id)s]::bigint[] AND v.until_barrier IS NULL AND NOT v.suspended
   AND (%(audience)s::text[] IS NULL OR jsonb_exists_any(c.groups, %(audience)s::text[]))
   AND NOT EXISTS (SELECT FROM registration_groups g JOIN suspensions s ON s.group_id IN (g.id, g.parent_id)
                    WHERE g.id = v.group_id AND s.until_barrier IS NULL)
 LIMIT %(count)s

-- name: listened
-- Filters of current and recent listeners; those of operators count for every audience.
SELECT DISTINCT l.filter
  FROM listen_interests l LEFT JOIN clients c ON c.id = l.client_id
 WHERE l.stream_id = %(stream_id)s AND l.expires_at > now()
   AND (%(audience)s::text[] IS NULL OR c.id IS NULL OR jsonb_exists_any(c.groups, %(audience)s::text[]))
 LIMIT %(listeners_max)s

-- name: marks
-- The inputs of a stream's closure that change without a barrier: whether the policy `quench` is set, and has been for so
-- long that every live listener is recorded; the number of versions of types in the zone; the listeners; the audience's members.
SELECT s.quench AND s.unquenched_at <= now() - %(settled_s)s * interval '1 second' AS quench,
       (SELECT count(*) FROM event_types t WHERE t.zone_id = s.zone_id) AS types,
       (SELECT md5(string_agg(l.client_id || ' ' || l.digest, ',' ORDER BY l.client_id, l.digest)) FROM listen_interests l
         WHERE l.stream_id = s.id AND l.expires_at > now()) AS listeners,
       (SELECT md5(string_agg(c.id::text, ',' ORDER BY c.id)) FROM clients c
         WHERE %(audience)s::text[] IS NOT NULL AND c.zone_id = s.zone_id AND c.deleted_at IS NULL
           AND jsonb_exists_any(c.groups, %(audience)s::text[])) AS members
  FROM streams s WHERE s.id = %(stream_id)s

-- name: hierarchy
-- The declared types of a stream's zone that have a parent.
SELECT t.domain, t.type, t.parent
  FROM event_types t JOIN streams s ON s.zone_id = t.zone_id
 WHERE s.id = %s AND t.version = 1 AND t.parent IS NOT NULL

-- name: changed_streams
-- The streams that changes at some barriers concern, each with its barriers.
SELECT stream, array_agg(id) AS barriers FROM (SELECT unnest(streams) AS stream, id FROM barriers WHERE id = ANY (%s::bigint[])) AS b
 GROUP BY stream

-- name: quenched
SELECT id FROM streams WHERE id = ANY (%s::bigint[]) AND quench

-- name: renew
-- Only on streams with the policy `quench`.
INSERT INTO listen_interests AS l (stream_id, client_id, digest, filter, expires_at)
SELECT w.stream_id, w.client_id, md5(w.filter)::uuid, w.filter, now() + %(seconds)s * interval '1 second'
  FROM unnest(%(streams)s::bigint[], %(clients)s::bigint[], %(filters)s::text[]) AS w (stream_id, client_id, filter)
  JOIN streams s ON s.id = w.stream_id AND s.quench
 ORDER BY w.stream_id, w.client_id, 3
    ON CONFLICT (stream_id, client_id, digest) DO UPDATE SET expires_at = GREATEST(l.expires_at, EXCLUDED.expires_at)

-- name: delete_expired
DELETE FROM listen_interests WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM listen_interests WHERE expires_at < now() - interval '1 hour' LIMIT 1000 FOR UPDATE SKIP LOCKED))
