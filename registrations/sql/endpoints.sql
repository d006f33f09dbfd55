-- Statements on endpoints that run in workers.

-- name: disable
-- `cause`: the failures because of which it is disabled, for an operational event.
WITH disabled AS (
    UPDATE endpoints SET enabled = false, reason = %(reason)s, changed_at = now()
     WHERE id = %(id)s AND enabled AND deleted_at IS NULL
    RETURNING *
)
SELECT z.id AS zone_id, z.name AS zone,
       {changed_attributes} AS attributes,
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

-- name: request_verification
INSERT INTO endpoint_verifications AS v (endpoint_id) VALUES (%(id)s)
    ON CONFLICT (endpoint_id) DO UPDATE
   SET number = v.number + 1, requested_at = now(), claimed_until = NULL, ended_at = NULL, outcome = NULL, status = NULL,
       detail = NULL, farewell = NULL

-- name: claim_verifications
-- The oldest requests, of each client at most a few at a time, so that none waits for the hanging receivers of another. A farewell
-- has the key of its subscription, and is none if there is a new one: a registration with that key and an endpoint of MCP.
WITH ranked AS (
    SELECT v.endpoint_id, v.requested_at, row_number() OVER (
               PARTITION BY e.client_id ORDER BY v.claimed_until > now() DESC NULLS LAST, v.requested_at) AS place
      FROM endpoint_verifications v JOIN endpoints e ON e.id = v.endpoint_id
     WHERE v.ended_at IS NULL AND e.deleted_at IS NULL AND v.requested_at <= now()
       AND (v.farewell IS NULL OR NOT EXISTS (
            SELECT FROM registrations r
              JOIN registration_versions w ON w.registration_id = r.id AND w.until_barrier IS NULL
              JOIN endpoints o ON o.id = w.endpoint_id AND o.format = 'mcp'
             WHERE r.client_id = e.client_id AND r.key = 'sub_' || split_part(v.farewell, '_', 3) AND r.deleted_at IS NULL))
), chosen AS (
    SELECT v.endpoint_id, v.number FROM ranked JOIN endpoint_verifications v USING (endpoint_id)
     WHERE place <= %(per_client_max)s AND v.ended_at IS NULL AND (v.claimed_until IS NULL OR v.claimed_until <= now())
     ORDER BY place, ranked.requested_at LIMIT %(verifications_max)s
       FOR UPDATE OF v SKIP LOCKED
)
UPDATE endpoint_verifications v SET claimed_until = now() + make_interval(secs => %(claim_s)s)
  FROM chosen JOIN endpoints e ON e.id = chosen.endpoint_id JOIN zones z ON z.id = e.zone_id
 WHERE v.endpoint_id = chosen.endpoint_id
RETURNING chosen.number, v.farewell, e.id, {callback_columns}

-- name: lock_endpoint
SELECT id FROM endpoints WHERE id = %(id)s FOR NO KEY UPDATE

-- name: end_verification
UPDATE endpoint_verifications
   SET ended_at = now(), claimed_until = NULL, outcome = %(outcome)s, status = %(status)s, detail = %(detail)s
 WHERE endpoint_id = %(id)s AND number = %(number)s AND ended_at IS NULL

-- name: end_subscriptions
-- Registrations of MCP that ended at a barrier, or name another endpoint from it on, had an endpoint of their own. It ends unless
-- another registration names it: at once, or if it is enabled, after its receiver was notified (`farewell`), or could not be for
-- a time. Returns those that were enabled.
WITH named AS (
    SELECT v.endpoint_id, r.key
      FROM registrations r JOIN registration_versions v ON v.registration_id = r.id
     WHERE r.id = ANY (%(ids)s::bigint[]) AND v.until_barrier = %(barrier)s
), expiring AS (
    UPDATE endpoints e
       SET expires_at = now() + make_interval(secs => CASE WHEN o.enabled THEN %(farewell_s)s ELSE 0 END),
           enabled = false, reason = coalesce(e.reason, 'request'), changed_at = now()
      FROM named n JOIN endpoints o ON o.id = n.endpoint_id
     WHERE e.id = o.id AND e.format = 'mcp' AND e.deleted_at IS NULL
       AND NOT EXISTS (SELECT FROM registration_versions v WHERE v.endpoint_id = e.id AND v.until_barrier IS NULL)
    RETURNING e.*, o.enabled AS was_enabled, n.key
), farewells AS (
    INSERT INTO endpoint_verifications AS v (endpoint_id, farewell)
    SELECT id, 'msg_terminated_' || substr(key, 5) || '_' || id FROM expiring WHERE was_enabled
        ON CONFLICT (endpoint_id) DO UPDATE
       SET number = v.number + 1, requested_at = now(), claimed_until = NULL, ended_at = NULL, outcome = NULL, status = NULL,
           detail = NULL, farewell = EXCLUDED.farewell
)
SELECT z.id AS zone_id, z.name AS zone, {changed_attributes} AS attributes, NULL::json AS cause
  FROM expiring e JOIN clients c ON c.id = e.client_id JOIN zones z ON z.id = c.zone_id
 WHERE e.was_enabled
 ORDER BY e.id

-- name: end_farewell
-- The receiver was notified: its endpoint ends.
WITH ended AS (
    UPDATE endpoint_verifications SET ended_at = now(), claimed_until = NULL, outcome = 'verified'
     WHERE endpoint_id = %(id)s AND number = %(number)s AND ended_at IS NULL
    RETURNING endpoint_id
)
UPDATE endpoints e SET expires_at = now() FROM ended WHERE e.id = ended.endpoint_id

-- name: put_off_farewell
UPDATE endpoint_verifications SET requested_at = now() + make_interval(secs => %(pause_s)s), claimed_until = NULL
 WHERE endpoint_id = %(id)s AND number = %(number)s AND ended_at IS NULL

-- name: verified
UPDATE endpoints e
   SET verified_at = now(), allowed_rate = %(allowed_rate)s, enabled = e.enabled OR coalesce(e.reason, '') = 'unverified',
       reason = nullif(e.reason, 'unverified'), changed_at = now()
  FROM clients c JOIN zones z ON z.id = c.zone_id
 WHERE e.id = %(id)s AND e.deleted_at IS NULL AND c.id = e.client_id
RETURNING z.id AS zone_id, z.name AS zone,
          json_build_object('client', c.name, 'endpoint', e.id, 'ordered', e.ordered, 'order_by', e.order_by, 'format', e.format,
                            'enabled', e.enabled, 'reason', e.reason, 'verified', true) AS attributes,
          NULL::json AS cause
