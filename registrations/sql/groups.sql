-- Making, suspending, resuming, deleting and showing groups of registrations.

-- name: count_groups
SELECT count(*) FROM registration_groups WHERE client_id = %s AND deleted_at IS NULL

-- name: insert_group
-- Nothing if the client has one of that name.
INSERT INTO registration_groups (zone_id, client_id, name) VALUES (%s, %s, %s)
    ON CONFLICT (client_id, name) WHERE deleted_at IS NULL DO NOTHING
RETURNING id

-- name: hold_groups
-- So that they are neither suspended, resumed nor deleted before the registrations that name them are there.
SELECT name, id FROM registration_groups
 WHERE client_id = %s AND name = ANY (%s::text[]) AND deleted_at IS NULL
 ORDER BY id FOR SHARE

-- name: lock_group
-- In a zone; of one client only, if one is given.
SELECT id FROM registration_groups
 WHERE id = %(id)s AND zone_id = %(zone_id)s AND deleted_at IS NULL
   AND (%(client_id)s::bigint IS NULL OR client_id = %(client_id)s)
   FOR UPDATE

-- name: streams_ever
-- The streams on which versions of the group are or ever were; the last column says of each whether any is there now.
SELECT t.id, t.name, s.registrations > 0
  FROM group_streams s JOIN streams t ON t.id = s.stream_id
 WHERE s.group_id = %s
 ORDER BY t.id

-- name: suspend
INSERT INTO suspensions (group_id, from_barrier) VALUES (%s, %s)

-- name: resume
UPDATE suspensions SET until_barrier = %s WHERE group_id = %s AND until_barrier IS NULL

-- name: delete_group
UPDATE registration_groups SET deleted_at = now() WHERE id = %s

-- name: delete_groups_of_client
UPDATE registration_groups SET deleted_at = now() WHERE client_id = %s AND deleted_at IS NULL

-- name: list_groups
SELECT g.id, c.name, g.name,
       EXISTS (SELECT FROM suspensions s WHERE s.group_id = g.id AND s.until_barrier IS NULL),
       g.registrations,
       (extract(epoch FROM g.created_at) * 1000000)::bigint
  FROM registration_groups g JOIN clients c ON c.id = g.client_id
 WHERE g.zone_id = %(zone_id)s AND g.deleted_at IS NULL AND g.id > %(after)s
   AND (%(client_id)s::bigint IS NULL OR g.client_id = %(client_id)s)
   AND (%(id)s::bigint IS NULL OR g.id = %(id)s)
 ORDER BY g.id
 LIMIT %(count)s
