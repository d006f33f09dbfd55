-- Statements on groups that run under the locks of registrations.

-- name: lock_groups
-- Keeps them from being suspended, resumed or deleted before the registrations that name them are committed.
SELECT name, id FROM registration_groups
 WHERE client_id = %s AND name = ANY (%s::text[]) AND deleted_at IS NULL
 ORDER BY id FOR SHARE

-- name: delete_groups_of_client
UPDATE registration_groups SET deleted_at = now() WHERE client_id = %s AND deleted_at IS NULL
