-- The last change of each resource, as an event of `system`, for conditional requests (EMC-12).

-- name: record
-- Changes of one kind, in their transaction, after the append. A resource is named once.
INSERT INTO resource_changes (kind, zone_id, name, segment, sequence)
SELECT %s, %s, v.name, %s, v.sequence FROM unnest(%s::text[], %s::bigint[]) AS v (name, sequence)
    ON CONFLICT (kind, zone_id, name) DO UPDATE SET segment = EXCLUDED.segment, sequence = EXCLUDED.sequence

-- name: last_changes
SELECT name, sequence FROM resource_changes WHERE kind = %s AND zone_id = %s AND name = ANY (%s::text[])

-- name: position
-- The last event of a stream.
SELECT segment::text, sequence FROM heads WHERE stream_id = %s
