-- The reads of the MCP route.

-- name: stream_names
-- The streams of a zone that are not deleted, by name.
SELECT name FROM streams WHERE zone_id = %s AND deleted_at IS NULL ORDER BY name LIMIT %s

-- name: subscription
-- A client's registration by its key, the endpoint that it names, and how that is called. One that was given another endpoint is no subscription any more.
SELECT r.id AS registration, e.id AS endpoint, v.streams[1] AS stream, e.secret, e.enabled, e.reason,
       e.verified_at IS NOT NULL AS verified, q.outcome AS verification, q.status AS verification_status,
       h.delivered_at, h.outcome, h.status, h.failing_since
  FROM registrations r
  JOIN registration_versions v ON v.registration_id = r.id AND v.until_barrier IS NULL
  JOIN endpoints e ON e.id = v.endpoint_id
  LEFT JOIN endpoint_verifications q ON q.endpoint_id = e.id AND q.ended_at IS NOT NULL
  LEFT JOIN endpoint_health h ON h.endpoint_id = e.id
 WHERE r.client_id = %s AND r.key = %s AND r.deleted_at IS NULL AND e.format = 'mcp'

-- name: watermark
-- The position before the first pending delivery of an endpoint; without one, the last event of the stream that was matched.
SELECT coalesce(p.segment, f.segment::text) AS segment, coalesce(p.sequence, f.sequence) AS sequence
  FROM (SELECT) AS one
  LEFT JOIN LATERAL (
       SELECT g.uuid::text AS segment, d.sequence - 1 AS sequence FROM deliveries d JOIN segments g ON g.id = d.segment_id
        WHERE d.endpoint_id = %(endpoint)s AND d.state = 'pending' ORDER BY d.sequence LIMIT 1) AS p ON true
  LEFT JOIN forwarding f ON f.stream_id = %(stream)s
 WHERE coalesce(p.sequence, f.sequence) IS NOT NULL
