-- What of groups of registrations is done under the locks of registrations and heads.

-- name: hold_groups
-- So that they are neither suspended, resumed nor deleted before the registrations that name them are there.
SELECT name, id FROM registration_groups
 WHERE client_id = %s AND name = ANY (%s::text[]) AND deleted_at IS NULL
 ORDER BY id FOR SHARE

-- name: streams_ever
-- The streams on which versions of the group are or ever were; the last column says of each whether any is there now.
SELECT t.id, t.name, s.registrations > 0 AS current
  FROM group_streams s JOIN streams t ON t.id = s.stream_id
 WHERE s.group_id = %s
 ORDER BY t.id

-- name: suspend
INSERT INTO suspensions (group_id, from_barrier) VALUES (%s, %s)

-- name: resume
UPDATE suspensions SET until_barrier = %s WHERE group_id = %s AND until_barrier IS NULL

-- name: delete_groups_of_client
UPDATE registration_groups SET deleted_at = now() WHERE client_id = %s AND deleted_at IS NULL

