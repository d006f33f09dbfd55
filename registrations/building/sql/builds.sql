-- Notes of builds of match indexes.

-- name: ask
-- Also at once of what failed. Who asks again before it has begun changes nothing; who asks while one is under way gets
-- another one, after the pause if that one fails.
INSERT INTO index_builds AS b (stream_id, asked_at) VALUES (%(stream_id)s, now())
ON CONFLICT (stream_id) DO UPDATE
   SET asked_at = CASE WHEN b.asked_at > COALESCE(b.begun_at, '-infinity') THEN b.asked_at ELSE now() END,
       tries = CASE WHEN b.ended_at IS NULL THEN b.tries ELSE 0 END

-- name: asked
SELECT stream_id FROM index_builds WHERE asked_at IS NOT NULL ORDER BY asked_at, stream_id

-- name: later
-- Streams whose next try has to wait: twice as long with each that did not end well, from its end or its last word on.
SELECT stream_id FROM index_builds
 WHERE tries > 0
   AND COALESCE(ended_at, heard_at, begun_at)
     + make_interval(secs => least(%(retry_s)s * 2 ^ least(tries - 1, 20), %(retry_s_max)s)) > now()

-- name: begin
INSERT INTO index_builds AS b (stream_id, tries, begun_at, heard_at, stage, expected)
VALUES (%(stream_id)s, 1, now(), now(), 'begun', %(expected)s)
ON CONFLICT (stream_id) DO UPDATE
   SET tries = b.tries + 1, begun_at = now(), heard_at = now(), stage = 'begun', done = 0,
       expected = %(expected)s, ended_at = NULL, reason = '', detail = ''

-- name: hear
UPDATE index_builds SET heard_at = now(), stage = %(stage)s, done = %(done)s
 WHERE stream_id = %(stream_id)s AND ended_at IS NULL

-- name: complete
-- Who asked after it began waits for another one.
UPDATE index_builds
   SET ended_at = now(), tries = 0, stage = '', done = %(done)s,
       asked_at = CASE WHEN asked_at > begun_at THEN asked_at END
 WHERE stream_id = %(stream_id)s AND ended_at IS NULL

-- name: fail
-- One that did not come as far as to begin has had its try as well.
INSERT INTO index_builds AS b (stream_id, tries, begun_at, ended_at, reason, detail)
VALUES (%(stream_id)s, 1, now(), now(), %(reason)s, %(detail)s)
ON CONFLICT (stream_id) DO UPDATE
   SET tries = b.tries + (b.begun_at IS NULL OR b.ended_at IS NOT NULL)::integer,
       begun_at = CASE WHEN b.ended_at IS NULL THEN COALESCE(b.begun_at, now()) ELSE now() END,
       ended_at = now(), stage = '', reason = %(reason)s, detail = %(detail)s,
       asked_at = CASE WHEN b.ended_at IS NULL AND b.asked_at > b.begun_at THEN b.asked_at END

-- name: builds
SELECT stream_id, (extract(epoch FROM asked_at) * 1000000)::bigint, (extract(epoch FROM begun_at) * 1000000)::bigint,
       (extract(epoch FROM ended_at) * 1000000)::bigint, stage, done, expected, reason, detail,
       begun_at IS NOT NULL AND ended_at IS NULL,
       COALESCE(heard_at > now() - make_interval(secs => %(silent_s)s), false)
  FROM index_builds WHERE stream_id = ANY (%(streams)s::bigint[])

-- name: at_work
-- The streams whose builders were heard lately.
SELECT stream_id FROM index_builds
 WHERE ended_at IS NULL AND heard_at > now() - make_interval(secs => %(silent_s)s)
 ORDER BY begun_at, stream_id

-- name: streams
-- The zone is null for the hub-wide stream.
SELECT s.id, z.name, s.name, s.matching, s.durability
  FROM streams s LEFT JOIN zones z ON z.id = s.zone_id
 WHERE s.id = ANY (%(streams)s::bigint[])
 ORDER BY z.name NULLS FIRST, s.name

-- name: noted
-- Streams whose last build did not end well, or of which somebody waits for one.
SELECT stream_id FROM index_builds WHERE tries > 0 OR asked_at IS NOT NULL

-- name: stream_of
-- Without a zone the hub-wide one.
SELECT s.id FROM streams s LEFT JOIN zones z ON z.id = s.zone_id
 WHERE s.name = %(stream)s AND (z.name = %(zone)s OR s.zone_id IS NULL)

-- name: has_zone
SELECT EXISTS (SELECT FROM zones WHERE name = %(zone)s)
