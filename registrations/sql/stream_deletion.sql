-- The end of a stream's registrations, and of the rows that concern it.

-- name: some_client
-- A client with live registrations of the stream, and some of these.
SELECT r.client_id, array_agg(r.id) AS ids
  FROM (SELECT w.registration_id FROM registration_versions w
         WHERE w.streams @> ARRAY[%(id)s]::bigint[] AND w.until_barrier IS NULL LIMIT %(rows_max)s) AS v
  JOIN registrations r ON r.id = v.registration_id AND r.deleted_at IS NULL
 GROUP BY r.client_id
 LIMIT 1

-- name: has_registrations
SELECT EXISTS (SELECT FROM registration_versions v JOIN registrations r ON r.id = v.registration_id
                WHERE v.streams @> ARRAY[%s]::bigint[] AND v.until_barrier IS NULL AND r.deleted_at IS NULL)

-- name: streams
SELECT id, name, matching FROM streams WHERE id = ANY (%s::bigint[])

-- name: erase_groups
DELETE FROM group_streams
 WHERE stream_id = %(id)s AND group_id IN (SELECT group_id FROM group_streams WHERE stream_id = %(id)s LIMIT %(rows_max)s)

-- name: erase_interests
DELETE FROM listen_interests
 WHERE stream_id = %(id)s AND digest IN (SELECT digest FROM listen_interests WHERE stream_id = %(id)s LIMIT %(rows_max)s)

-- name: erase_cursors
DELETE FROM session_cursors
 WHERE stream_id = %(id)s
   AND session_id IN (SELECT session_id FROM session_cursors WHERE stream_id = %(id)s LIMIT %(rows_max)s)

-- name: erase_claims
DELETE FROM session_claims
 WHERE stream_id = %(id)s AND id IN (SELECT id FROM session_claims WHERE stream_id = %(id)s LIMIT %(rows_max)s)

-- name: erase_build
DELETE FROM index_builds WHERE stream_id = %(id)s
