-- The encrypted secrets of endpoints and sources, as workers read and the re-encryption changes them.

-- name: of_endpoints
-- Secrets that have not expired. An endpoint that a process of the release before created has its secret in its own row only.
SELECT s.id, s.endpoint_id, s.kind, s.sealed, (extract(epoch FROM s.expires_at) * 1000000)::bigint AS expires_at_us
  FROM unnest(%(endpoints)s::bigint[]) AS requested (id)
  JOIN endpoint_secrets s ON s.endpoint_id = requested.id AND (s.expires_at IS NULL OR s.expires_at > now())
UNION ALL
SELECT 0, e.id, 'v1', e.secret, NULL
  FROM unnest(%(endpoints)s::bigint[]) AS requested (id)
  JOIN endpoints e ON e.id = requested.id
 WHERE NOT EXISTS (SELECT FROM endpoint_secrets s
                    WHERE s.endpoint_id = requested.id AND s.kind = 'v1' AND s.expires_at IS NULL)
 ORDER BY endpoint_id, kind, expires_at_us DESC NULLS FIRST

-- name: sealed_of_endpoints
-- A batch of endpoints with their encrypted secrets, by id.
SELECT id, 'endpoint ' || id AS owner, secret AS sealed FROM endpoints
 WHERE id > %(after)s AND deleted_at IS NULL ORDER BY id LIMIT %(rows_max)s

-- name: replace_of_endpoints
-- Unless a secret was replaced since it was read.
UPDATE endpoints e SET secret = n.sealed
  FROM unnest(%(ids)s::bigint[], %(before)s::bytea[], %(sealed)s::bytea[]) AS n (id, before, sealed)
 WHERE e.id = n.id AND e.secret = n.before

-- name: sealed_secrets
-- A batch of encrypted secrets, by id.
SELECT id, 'endpoint ' || endpoint_id AS owner, sealed FROM endpoint_secrets WHERE id > %(after)s ORDER BY id LIMIT %(rows_max)s

-- name: replace_secrets
-- Unless a secret was replaced since it was read.
UPDATE endpoint_secrets s SET sealed = n.sealed
  FROM unnest(%(ids)s::bigint[], %(before)s::bytea[], %(sealed)s::bytea[]) AS n (id, before, sealed)
 WHERE s.id = n.id AND s.sealed = n.before

-- name: sealed_of_sources
-- A batch of encrypted secrets of sources, by id.
SELECT id, 'source ' || source_id AS owner, sealed FROM source_secrets WHERE id > %(after)s ORDER BY id LIMIT %(rows_max)s

-- name: replace_of_sources
-- Unless a secret was replaced since it was read.
UPDATE source_secrets s SET sealed = n.sealed
  FROM unnest(%(ids)s::bigint[], %(before)s::bytea[], %(sealed)s::bytea[]) AS n (id, before, sealed)
 WHERE s.id = n.id AND s.sealed = n.before

-- name: sealed_of_connectors
-- A batch of encrypted URLs of connectors, by id.
SELECT id, 'connector ' || id AS owner, sealed FROM connectors WHERE id > %(after)s ORDER BY id LIMIT %(rows_max)s

-- name: replace_of_connectors
-- Unless a URL was replaced since it was read.
UPDATE connectors k SET sealed = n.sealed
  FROM unnest(%(ids)s::bigint[], %(before)s::bytea[], %(sealed)s::bytea[]) AS n (id, before, sealed)
 WHERE k.id = n.id AND k.sealed = n.before
