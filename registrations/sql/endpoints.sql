-- Making, changing, deleting and showing endpoints.

-- name: count_endpoints
SELECT count(*) FROM endpoints WHERE client_id = %s AND deleted_at IS NULL

-- name: insert_endpoint
INSERT INTO endpoints (zone_id, client_id, url, description, ordered, format, secret)
VALUES (%(zone_id)s, %(client_id)s, %(url)s, %(description)s, %(ordered)s, %(format)s, %(secret)s)
RETURNING id

-- name: hold_endpoints
-- So that they are not deleted before the registrations that name them are there.
SELECT id, url FROM endpoints
 WHERE client_id = %(client_id)s AND deleted_at IS NULL
   AND (id = ANY (%(ids)s::bigint[]) OR url = ANY (%(urls)s::text[]))
 ORDER BY id FOR SHARE

-- name: lock_endpoint
-- In a zone; of one client only, if one is given.
SELECT id FROM endpoints
 WHERE id = %(id)s AND zone_id = %(zone_id)s AND deleted_at IS NULL
   AND (%(client_id)s::bigint IS NULL OR client_id = %(client_id)s)
   FOR UPDATE

-- name: is_named
SELECT EXISTS (SELECT 1 FROM registration_versions WHERE endpoint_id = %s AND until_barrier IS NULL)

-- name: streams_behind
-- The streams of the live registrations that name the endpoint.
SELECT name FROM streams
 WHERE id IN (SELECT unnest(streams) FROM registration_versions WHERE endpoint_id = %s AND until_barrier IS NULL)
 ORDER BY name

-- name: change_endpoint
-- How another URL answers is not known yet.
WITH forgotten AS (
    DELETE FROM endpoint_health h USING endpoints e
     WHERE h.endpoint_id = %(id)s AND e.id = h.endpoint_id AND e.url <> %(url)s
)
UPDATE endpoints SET url = %(url)s, description = %(description)s, ordered = %(ordered)s,
       format = %(format)s, enabled = %(enabled)s, reason = %(reason)s, changed_at = now()
 WHERE id = %(id)s

-- name: delete_endpoint
UPDATE endpoints SET deleted_at = now(), changed_at = now(), enabled = false WHERE id = %s

-- name: delete_endpoints_of_client
UPDATE endpoints SET deleted_at = now(), changed_at = now(), enabled = false
 WHERE client_id = %s AND deleted_at IS NULL

-- name: list_endpoints
SELECT e.id, c.name, e.url, e.description, e.ordered, e.format, e.enabled, e.reason,
       (extract(epoch FROM e.created_at) * 1000000)::bigint,
       (extract(epoch FROM e.changed_at) * 1000000)::bigint,
       (extract(epoch FROM h.attempted_at) * 1000000)::bigint, h.outcome, h.status,
       (extract(epoch FROM h.delivered_at) * 1000000)::bigint,
       (extract(epoch FROM h.failing_since) * 1000000)::bigint
  FROM endpoints e JOIN clients c ON c.id = e.client_id LEFT JOIN endpoint_health h ON h.endpoint_id = e.id
 WHERE e.zone_id = %(zone_id)s AND e.deleted_at IS NULL AND e.id > %(after)s
   AND (%(client_id)s::bigint IS NULL OR e.client_id = %(client_id)s)
   AND (%(id)s::bigint IS NULL OR e.id = %(id)s)
 ORDER BY e.id
 LIMIT %(count)s

-- name: disable
UPDATE endpoints e SET enabled = false, reason = %(reason)s, changed_at = now()
  FROM clients c JOIN zones z ON z.id = c.zone_id
 WHERE e.id = %(id)s AND e.enabled AND e.deleted_at IS NULL AND c.id = e.client_id
RETURNING z.id, z.name, c.name, e.ordered, e.format
