-- Statements on endpoints that run in workers.

-- name: disable
-- `cause`: the failures because of which it is disabled, for an operational event.
WITH disabled AS (
    UPDATE endpoints SET enabled = false, reason = %(reason)s, changed_at = now()
     WHERE id = %(id)s AND enabled AND deleted_at IS NULL
    RETURNING *
)
SELECT z.id AS zone_id, z.name AS zone,
       json_build_object('client', c.name, 'endpoint', e.id, 'ordered', e.ordered, 'format', e.format,
                         'enabled', e.enabled, 'reason', e.reason) AS attributes,
       json_build_object('level', 'warning', 'client', c.name, 'endpoint', e.id, 'reason', e.reason,
                         'failures', k.failures, 'outcome', k.outcome, 'status', k.status,
                         'since', to_char(k.failing_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                         'event', json_build_object('stream', s.name, 'segment', g.uuid, 'sequence', k.sequence)) AS cause
  FROM disabled e
  JOIN clients c ON c.id = e.client_id
  JOIN zones z ON z.id = c.zone_id
  LEFT JOIN circuits k ON k.endpoint_id = e.id
  LEFT JOIN segments g ON g.id = k.segment_id
  LEFT JOIN streams s ON s.id = g.stream_id
