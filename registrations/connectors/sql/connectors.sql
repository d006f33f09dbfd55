-- Connectors in the process that runs them, and their ends. A transaction locks the row of a connector, then its state, then heads.

-- name: enabled
-- The connectors to run, each with its client, zone and quotas.
SELECT k.id, k.name, k.kind, k.settings::text AS settings, k.mapping::text AS mapping, k.on_refusal, k.sealed,
       k.changed_at::text AS version, t.name AS stream, c.id AS client_id, c.name AS client, z.id AS zone_id, z.name AS zone,
       (SELECT value FROM quotas WHERE zone_id = z.id AND client_id = c.id AND kind = 'events_per_s') AS client_rate,
       (SELECT value FROM quotas WHERE zone_id = z.id AND client_id IS NULL AND kind = 'events_per_s') AS zone_rate,
       (SELECT value FROM quotas
         WHERE zone_id = z.id AND client_id IS NULL AND kind = 'stored_bytes' AND reached_at IS NOT NULL) AS storage_quota
  FROM connectors k
  JOIN clients c ON c.id = k.client_id AND c.deleted_at IS NULL
  JOIN zones z ON z.id = k.zone_id AND z.deleted_at IS NULL
  JOIN streams t ON t.id = k.stream_id AND t.deleted_at IS NULL
 WHERE k.enabled
 ORDER BY k.id
 LIMIT %(connectors_max)s

-- name: position
SELECT position FROM connector_states WHERE connector_id = %(id)s

-- name: advance
-- Moves the position, unless the connector was changed, paused or deleted, or another process has moved it. The lock lets a change
-- wait for this transaction, so that nothing is appended by the former definition after it.
WITH valid AS MATERIALIZED (
    SELECT id FROM connectors WHERE id = %(id)s AND changed_at = %(version)s::timestamptz AND enabled FOR SHARE
)
UPDATE connector_states s
   SET position = %(position)s, rows = s.rows + %(rows)s, refused = s.refused + %(refused)s,
       row_at = CASE WHEN %(rows)s > 0 THEN now() ELSE s.row_at END
  FROM valid
 WHERE s.connector_id = valid.id AND s.position = %(expected)s
RETURNING true AS is_moved

-- name: report
-- Writes the states of the connectors of a process.
UPDATE connector_states s
   SET state = v.state, detail = v.detail, lag = v.lag, seen_at = now(),
       error_at = CASE WHEN v.error = '' THEN NULL WHEN v.error = s.error THEN s.error_at ELSE now() END,
       error = v.error,
       caught_up_at = CASE WHEN v.lag = 0 THEN now() ELSE s.caught_up_at END
  FROM unnest(%(ids)s::bigint[], %(states)s::text[], %(errors)s::text[], %(details)s::text[], %(lags)s::integer[])
       AS v (id, state, error, detail, lag)
 WHERE s.connector_id = v.id

-- name: notify
SELECT pg_notify('eventhub_connectors', '')

-- name: of_client
SELECT id FROM connectors WHERE client_id = %(id)s ORDER BY id LIMIT %(rows_max)s

-- name: of_stream
SELECT id FROM connectors WHERE stream_id = %(id)s ORDER BY id LIMIT %(rows_max)s

-- name: end
-- Deletes connectors with their states.
WITH ended AS (
    DELETE FROM connectors WHERE id = ANY (%(ids)s::bigint[]) RETURNING id
), states AS (
    DELETE FROM connector_states s USING ended e WHERE s.connector_id = e.id
)
SELECT id FROM ended
