-- The reads of the MCP route.

-- name: stream_names
-- The streams of a zone that are not deleted, by name.
SELECT name FROM streams WHERE zone_id = %s AND deleted_at IS NULL ORDER BY name LIMIT %s
