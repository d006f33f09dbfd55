-- Sessions and session groups: names, positions in streams, and their end, under the locks of registrations.

-- name: live_of_session
-- The registrations that belong to a session, or to a session group.
SELECT id FROM registrations
 WHERE (session_id = %(session)s OR session_group_id = %(session_group)s) AND deleted_at IS NULL
 ORDER BY id

-- name: sessions_by_name
-- Sessions of a client by name, each with its root group.
SELECT s.name, s.id, s.kind, g.id AS root_id
  FROM sessions s LEFT JOIN registration_groups g ON g.session_id = s.id AND g.root AND g.deleted_at IS NULL
 WHERE s.client_id = %s AND s.name = ANY (%s::text[]) AND s.deleted_at IS NULL

-- name: lock_session_groups
-- Session groups of a client by name, each with its root group. Keeps sessions from joining and leaving them until the cursors
-- of the members are committed.
SELECT m.name, m.id, 'consumer' AS kind, g.id AS root_id
  FROM session_groups m LEFT JOIN registration_groups g ON g.session_group_id = m.id AND g.root AND g.deleted_at IS NULL
 WHERE m.client_id = %s AND m.name = ANY (%s::text[]) AND m.deleted_at IS NULL
 ORDER BY m.id FOR SHARE OF m

-- name: start_cursors
-- Start cursors, at a barrier's positions, of the sessions and of the members of the session groups whose registrations have
-- versions that begin there, in the streams in which they have none. Transient streams have no positions. Of a group that shares, the
-- session of kind `group` has the position.
WITH begun AS MATERIALIZED (
    SELECT DISTINCT r.session_id, r.session_group_id, n.stream_id
      FROM registration_versions v
      JOIN registrations r ON r.id = v.registration_id
     CROSS JOIN LATERAL unnest(v.streams) AS n (stream_id)
     WHERE v.from_barrier = %(barrier)s AND (r.session_id IS NOT NULL OR r.session_group_id IS NOT NULL)
), positions AS MATERIALIZED (
    SELECT p.stream_id, p.segment, p.sequence
      FROM barriers b, unnest(b.streams, b.segments, b.sequences) AS p (stream_id, segment, sequence)
     WHERE b.id = %(barrier)s
), consumers AS (
    SELECT session_id, stream_id FROM begun WHERE session_id IS NOT NULL
    UNION
    SELECT s.id, b.stream_id
      FROM begun b JOIN session_groups g ON g.id = b.session_group_id
      JOIN sessions s ON s.group_id = g.id AND s.deleted_at IS NULL AND (g.sharing = 'every' OR s.kind = 'group')
)
INSERT INTO session_cursors (session_id, stream_id, segment, sequence)
SELECT c.session_id, p.stream_id, p.segment, p.sequence
  FROM consumers c JOIN positions p USING (stream_id)
 ORDER BY c.session_id, p.stream_id
    ON CONFLICT DO NOTHING

-- name: end_sessions
-- Delete a client's sessions with their cursors, and its session groups, which other clients' sessions leave.
WITH groups AS (
    UPDATE session_groups SET deleted_at = now() WHERE client_id = %(client_id)s AND deleted_at IS NULL RETURNING id
), left_groups AS (
    UPDATE sessions SET group_id = NULL
     WHERE group_id IN (SELECT id FROM groups) AND client_id <> %(client_id)s AND deleted_at IS NULL
), ended AS (
    UPDATE sessions SET deleted_at = now(), group_id = NULL, attachment = NULL
     WHERE client_id = %(client_id)s AND deleted_at IS NULL
    RETURNING id, kind
), cursors AS (
    DELETE FROM session_cursors WHERE session_id IN (SELECT id FROM ended)
), claims AS (
    DELETE FROM session_claims WHERE session_id IN (SELECT id FROM ended)
)
SELECT (SELECT count(*) FROM ended WHERE kind <> 'group') AS sessions, (SELECT count(*) FROM groups) AS session_groups

-- name: end_session_cursors
-- The cursors of a session in the streams that none of its own registrations names; events of its group that it has come again.
WITH given_back AS (
    UPDATE session_claims SET claimed_until = now() WHERE holder_id = %(session)s AND session_id <> %(session)s
)
DELETE FROM session_cursors c
 WHERE c.session_id = %(session)s
   AND NOT EXISTS (SELECT FROM registration_groups g
                     JOIN group_streams n ON n.group_id = g.id AND n.stream_id = c.stream_id AND n.registrations > 0
                    WHERE g.session_id = c.session_id AND g.deleted_at IS NULL)

-- name: delete_cursors
WITH given_back AS (
    UPDATE session_claims SET claimed_until = now() WHERE holder_id = %(session)s AND session_id <> %(session)s
), ended AS (
    DELETE FROM session_claims WHERE session_id = %(session)s
)
DELETE FROM session_cursors WHERE session_id = %(session)s

-- name: start_cursors_of_member
-- Start the cursors of a session at a barrier's positions in the streams in which it has none.
INSERT INTO session_cursors (session_id, stream_id, segment, sequence)
SELECT %(session)s, p.stream_id, p.segment, p.sequence
  FROM barriers b, unnest(b.streams, b.segments, b.sequences) AS p (stream_id, segment, sequence)
 WHERE b.id = %(barrier)s
 ORDER BY p.stream_id
    ON CONFLICT DO NOTHING

-- name: delete_groups_of_session
UPDATE registration_groups SET deleted_at = now()
 WHERE (session_id = %(session)s OR session_group_id = %(session_group)s) AND deleted_at IS NULL
