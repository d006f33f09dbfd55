-- What of groups of registrations is done under the locks of registrations.

-- name: lock_groups
-- So that they are neither suspended, resumed nor deleted before the registrations that name them are there.
SELECT name, id FROM registration_groups
 WHERE client_id = %s AND name = ANY (%s::text[]) AND deleted_at IS NULL
 ORDER BY id FOR SHARE

-- name: delete_groups_of_client
UPDATE registration_groups SET deleted_at = now() WHERE client_id = %s AND deleted_at IS NULL
