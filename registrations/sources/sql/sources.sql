-- Sources on the path of a request, and the ends of sources.

-- name: find
-- The source of a token's digest, with its client, zone, quotas and valid secrets.
SELECT s.id, s.name, s.provider, s.options::text AS options, s.mapping::text AS mapping, s.enabled, t.name AS stream,
       c.id AS client_id, c.name AS client, z.id AS zone_id, z.name AS zone,
       (SELECT value FROM quotas WHERE zone_id = z.id AND client_id = c.id AND kind = 'events_per_s') AS client_rate,
       (SELECT value FROM quotas WHERE zone_id = z.id AND client_id IS NULL AND kind = 'events_per_s') AS zone_rate,
       (SELECT value FROM quotas
         WHERE zone_id = z.id AND client_id IS NULL AND kind = 'stored_bytes' AND reached_at IS NOT NULL) AS storage_quota,
       ARRAY(SELECT k.sealed FROM source_secrets k
              WHERE k.source_id = s.id AND (k.expires_at IS NULL OR k.expires_at > now()) ORDER BY k.id DESC) AS sealed
  FROM sources s
  JOIN clients c ON c.id = s.client_id AND c.deleted_at IS NULL
  JOIN zones z ON z.id = s.zone_id AND z.deleted_at IS NULL
  JOIN streams t ON t.id = s.stream_id AND t.deleted_at IS NULL
 WHERE s.token_digest = %(digest)s OR (s.former_digest = %(digest)s AND s.former_expires_at > now())

-- name: record
-- Counts a request and stores it as a sample, in the slot of the oldest one of its kind; nothing if the source was deleted.
WITH counted AS (
    UPDATE source_counts
       SET stored = stored + (%(outcome)s = 'stored')::int,
           repeated = repeated + (%(outcome)s = 'repeated')::int,
           answered = answered + (%(outcome)s = 'answered')::int,
           failed = failed + (%(outcome)s = 'failed')::int,
           refused = refused + (%(outcome)s = 'refused')::int,
           verified_at = CASE WHEN %(outcome)s = 'refused' THEN verified_at ELSE now() END,
           refused_at = CASE WHEN %(outcome)s = 'refused' THEN now() ELSE refused_at END
     WHERE source_id = %(source)s
    RETURNING CASE WHEN %(outcome)s = 'refused' THEN refused ELSE stored + repeated + answered + failed END AS number
)
INSERT INTO source_samples (source_id, verified, slot, received_at, outcome, reason, detail, address, sequence, headers, query,
                            body, body_bytes)
SELECT %(source)s, %(outcome)s <> 'refused', number %% %(samples_max)s, now(), %(outcome)s, %(reason)s, %(detail)s, %(address)s,
       %(sequence)s, %(headers)s::jsonb, %(query)s, %(body)s, %(body_bytes)s
  FROM counted
    ON CONFLICT (source_id, verified, slot) DO UPDATE
   SET id = excluded.id, received_at = excluded.received_at, outcome = excluded.outcome, reason = excluded.reason,
       detail = excluded.detail, address = excluded.address, sequence = excluded.sequence, headers = excluded.headers,
       query = excluded.query, body = excluded.body, body_bytes = excluded.body_bytes

-- name: of_client
SELECT id FROM sources WHERE client_id = %(id)s ORDER BY id LIMIT %(rows_max)s

-- name: of_stream
SELECT id FROM sources WHERE stream_id = %(id)s ORDER BY id LIMIT %(rows_max)s

-- name: end
-- Deletes sources with all that belongs to them.
WITH ended AS (
    DELETE FROM sources WHERE id = ANY (%(ids)s::bigint[]) RETURNING id
), secrets AS (
    DELETE FROM source_secrets k USING ended e WHERE k.source_id = e.id
), samples AS (
    DELETE FROM source_samples a USING ended e WHERE a.source_id = e.id
), counts AS (
    DELETE FROM source_counts n USING ended e WHERE n.source_id = e.id
)
SELECT id FROM ended
