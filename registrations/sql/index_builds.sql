-- Records of builds of match indexes.

-- name: request
-- Request a build, immediately also after a failure. A second request before the start changes nothing; a request during a
-- build gets another one, after the backoff if that build fails.
INSERT INTO index_builds AS b (stream_id, requested_at) VALUES (%(stream_id)s, now())
ON CONFLICT (stream_id) DO UPDATE
   SET requested_at = CASE WHEN b.requested_at IS NULL OR b.started_at IS NOT NULL AND b.ended_at IS NULL AND NOT b.again THEN now()
                       ELSE b.requested_at END,
       again = b.started_at IS NOT NULL AND b.ended_at IS NULL,
       attempts = CASE WHEN b.ended_at IS NULL THEN b.attempts ELSE 0 END

-- name: requested
SELECT stream_id FROM index_builds WHERE requested_at IS NOT NULL ORDER BY requested_at, stream_id

-- name: backing_off
-- Streams in backoff, which doubles with each failed attempt, from its end or last heartbeat on. A time in the future is
-- ignored, because the clock was set back since.
SELECT stream_id FROM index_builds,
       LATERAL (SELECT COALESCE(ended_at, heartbeat_at, started_at) AS at) AS last
 WHERE attempts > 0 AND last.at <= now()
   AND last.at + make_interval(secs => least(%(retry_s)s * 2 ^ least(attempts - 1, 20), %(retry_s_max)s)) > now()

-- name: start
-- Record a start, which serves all requests so far.
INSERT INTO index_builds AS b (stream_id, attempts, started_at, heartbeat_at, stage, expected)
VALUES (%(stream_id)s, 1, now(), now(), 'started', %(expected)s)
ON CONFLICT (stream_id) DO UPDATE
   SET attempts = b.attempts + 1, started_at = now(), heartbeat_at = now(), stage = 'started', done = 0,
       expected = %(expected)s, ended_at = NULL, reason = '', detail = '', again = false

-- name: heartbeat
UPDATE index_builds SET heartbeat_at = now(), stage = %(stage)s, done = %(done)s
 WHERE stream_id = %(stream_id)s AND ended_at IS NULL

-- name: complete
-- Record success. A request made after the start remains open.
UPDATE index_builds
   SET ended_at = now(), attempts = 0, stage = '', done = %(done)s, requested_at = CASE WHEN again THEN requested_at END, again = false
 WHERE stream_id = %(stream_id)s AND ended_at IS NULL

-- name: fail
-- Record a failure. A build that could not start counts as an attempt too.
INSERT INTO index_builds AS b (stream_id, attempts, started_at, ended_at, reason, detail)
VALUES (%(stream_id)s, 1, now(), now(), %(reason)s, %(detail)s)
ON CONFLICT (stream_id) DO UPDATE
   SET attempts = b.attempts + (b.started_at IS NULL OR b.ended_at IS NOT NULL)::integer,
       started_at = CASE WHEN b.ended_at IS NULL THEN COALESCE(b.started_at, now()) ELSE now() END,
       ended_at = now(), stage = '', reason = %(reason)s, detail = %(detail)s,
       requested_at = CASE WHEN b.again THEN b.requested_at END, again = false

-- name: builds
-- A heartbeat in the future, by more than the allowed silence, was sent before the clock was set back: it is ignored.
SELECT stream_id, (extract(epoch FROM requested_at) * 1000000)::bigint AS requested_at_us,
       (extract(epoch FROM started_at) * 1000000)::bigint AS started_at_us,
       (extract(epoch FROM ended_at) * 1000000)::bigint AS ended_at_us, stage, done, expected, reason, detail,
       started_at IS NOT NULL AND ended_at IS NULL AS is_open,
       COALESCE(heartbeat_at BETWEEN now() - silent AND now() + silent, false) AS is_alive
  FROM index_builds, make_interval(secs => %(silent_s)s) AS silent WHERE stream_id = ANY (%(streams)s::bigint[])

-- name: active
-- The streams whose builders sent a heartbeat lately.
SELECT stream_id FROM index_builds, make_interval(secs => %(silent_s)s) AS silent
 WHERE ended_at IS NULL AND heartbeat_at BETWEEN now() - silent AND now() + silent
 ORDER BY started_at, stream_id

-- name: streams
-- The zone is null for the hub-wide stream.
SELECT s.id, z.name AS zone, s.name, s.matching, s.durability
  FROM streams s LEFT JOIN zones z ON z.id = s.zone_id
 WHERE s.id = ANY (%(streams)s::bigint[])
 ORDER BY z.name NULLS FIRST, s.name

-- name: open_or_failed
-- Streams whose last build did not succeed, or with a requested one.
SELECT stream_id FROM index_builds WHERE attempts > 0 OR requested_at IS NOT NULL

-- name: erased
SELECT id FROM streams WHERE id = ANY (%(streams)s::bigint[]) AND erased_at IS NOT NULL

-- name: zone_id
SELECT id FROM zones WHERE name = %s
