-- The append as one function, so that heads are locked only inside the server: there is one round trip, and a process that is
-- stopped in the middle of a request never holds a lock.
--
-- Drafts are parallel arrays in order of arrival. `clients`, `incarnations` and `numbers` are null if no draft of the batch has a
-- producer, `tokens` if none has a token, `keys` and `tombstones` if none has a key; a single draft without one has null, or an
-- empty token or key. Either every draft is stored (or found to be a duplicate), or some are refused and nothing is stored: then
-- the caller tries again without those requests.
--
-- Rows: `run` (stream, segment, first and last assigned sequence, in the order of the drafts, watchers as in `heads`), `duplicate` (draft, stream,
-- segment, sequence in `first`), `again` (draft, stream, the earlier draft of this batch in `first`), `head` (stream, segment, last
-- sequence; only if some draft was stored before), `unknown_stream` and `producer_window` (draft, stream; the producer's highest
-- number in `first`).
CREATE OR REPLACE FUNCTION append_events(
    streams bigint[], masks bigint[], payloads bytea[],
    clients bigint[], incarnations bigint[], numbers bigint[],
    producer_window integer,
    tokens bytea[], keys text[], tombstones bigint[]
) RETURNS TABLE (
    outcome text, draft integer, stream bigint, segment uuid,
    first bigint, last bigint, appended_at_us bigint, watchers integer[]
) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    locked      bigint[];           -- the streams of the batch, in order ...
    heads_were  bigint[];           -- ... and their last sequences before it
    batch_bytes bigint;
    at          timestamptz;
    skipped     bigint[] := '{}';   -- drafts that are stored already
    refusals    integer;
    rolling     bigint[];           -- streams whose open segment may be filled
    head        record;
    size        bigint;
    in_segment  bigint;
    in_partition integer;
    in_segments bigint[];           -- of each event of a rolling stream
    in_partitions integer[];
    plain       boolean := numbers IS NULL AND tokens IS NULL AND keys IS NULL;
    given       bigint[];           -- the sequence of each draft; null for a skipped one
    given_in    uuid[];
BEGIN
    -- A single event without a producer, frequent in sparse streams: three small statements.
    IF cardinality(streams) = 1 AND plain THEN
        SELECT h.*, s.segment_events_max, s.segment_bytes_max INTO head
          FROM heads h JOIN streams s ON s.id = h.stream_id
         WHERE h.stream_id = streams[1]
           FOR NO KEY UPDATE OF h;
        size := octet_length(payloads[1]);
        IF head.sequence - head.first + 2 < head.segment_events_max
           AND head.bytes + size < head.segment_bytes_max THEN
            at := clock_timestamp();
            INSERT INTO events (segment_id, sequence, mask, partition_id, payload, appended_at)
            VALUES (head.segment_id, head.sequence + 1, masks[1], head.partition_id, payloads[1], at);
            UPDATE heads SET sequence = head.sequence + 1, bytes = head.bytes + size
             WHERE stream_id = head.stream_id;
            outcome := 'run';
            stream := head.stream_id;
            segment := head.segment;
            first := head.sequence + 1;
            last := first;
            appended_at_us := (extract(epoch FROM at) * 1000000)::bigint;
            watchers := head.watchers;
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;

    -- The one lock, in stream order: an UPDATE joined to unnest would lock in hash order and deadlock.
    -- `system` is stream 1 and comes first. The statements below see everything that was committed before the lock was granted.
    WITH batch AS (
        SELECT v.stream_id, count(*) AS count, sum(octet_length(v.payload)) AS bytes
          FROM unnest(streams, payloads) AS v (stream_id, payload)
         GROUP BY v.stream_id
    ), h AS MATERIALIZED (
        SELECT * FROM heads WHERE stream_id = ANY (streams) ORDER BY stream_id FOR NO KEY UPDATE
    )
    SELECT array_agg(h.stream_id), array_agg(h.sequence), count(*) FILTER (WHERE h.stream_id IS NULL),
           sum(b.bytes),
           array_agg(h.stream_id) FILTER (WHERE h.sequence - h.first + 1 + b.count >= s.segment_events_max
                                             OR h.bytes + b.bytes >= s.segment_bytes_max)
      INTO locked, heads_were, refusals, batch_bytes, rolling
      FROM batch b
      LEFT JOIN h USING (stream_id)
      LEFT JOIN streams s ON s.id = h.stream_id;
    at := clock_timestamp();
    IF refusals > 0 THEN
        RETURN QUERY
            SELECT 'unknown_stream', (v.n - 1)::integer, v.stream_id, NULL::uuid,
                   NULL::bigint, NULL::bigint, NULL::bigint, NULL::integer[]
              FROM unnest(streams) WITH ORDINALITY AS v (stream_id, n)
             WHERE NOT EXISTS (SELECT 1 FROM heads h WHERE h.stream_id = v.stream_id);
        RETURN;
    END IF;

    IF numbers IS NOT NULL THEN
        FOR head IN
            WITH given AS (
                SELECT * FROM unnest(streams, clients, incarnations, numbers) WITH ORDINALITY
                    AS v (stream_id, client_id, incarnation, number, n)
                 WHERE number IS NOT NULL
            ), known AS (
                SELECT g.n, g.stream_id, g.number, f.segment, f.sequence,
                       greatest(coalesce(p.highest_number, 0), coalesce(max(g.number) OVER earlier, 0)) AS highest_number,
                       first_value(g.n) OVER same AS original
                  FROM given g
                  LEFT JOIN producers p USING (stream_id, client_id, incarnation)
                  LEFT JOIN producer_numbers f
                    ON (f.stream_id, f.client_id, f.incarnation, f.slot, f.number)
                     = (g.stream_id, g.client_id, g.incarnation, (g.number % producer_window)::integer, g.number)
                WINDOW earlier AS (PARTITION BY g.stream_id, g.client_id, g.incarnation ORDER BY g.n
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
                       same AS (PARTITION BY g.stream_id, g.client_id, g.incarnation, g.number ORDER BY g.n)
            )
            SELECT CASE WHEN sequence IS NOT NULL THEN 'duplicate'
                        WHEN original < n THEN 'again'
                        ELSE 'producer_window' END AS finding, known.*
              FROM known
             WHERE sequence IS NOT NULL OR original < n OR number <= highest_number - producer_window
             ORDER BY n
        LOOP
            outcome := head.finding;
            draft := head.n - 1;
            stream := head.stream_id;
            segment := head.segment;
            first := CASE head.finding WHEN 'duplicate' THEN head.sequence
                                       WHEN 'again' THEN head.original - 1
                                       ELSE head.highest_number END;
            IF head.finding = 'producer_window' THEN
                refusals := refusals + 1;
            END IF;
            skipped := skipped || head.n;
            RETURN NEXT;
        END LOOP;
        IF refusals > 0 THEN
            RETURN;
        END IF;
    END IF;

    IF tokens IS NOT NULL THEN
        FOR head IN
            SELECT * FROM (
                SELECT g.n, g.stream_id, t.segment, t.sequence,
                       first_value(g.n) OVER (PARTITION BY g.stream_id, g.digest ORDER BY g.n) AS original
                  FROM unnest(streams, tokens) WITH ORDINALITY AS g (stream_id, digest, n)
                  LEFT JOIN idempotency_digests t USING (stream_id, digest)
                 WHERE g.digest <> '' AND g.n <> ALL (skipped)) AS known
             WHERE sequence IS NOT NULL OR original < n
             ORDER BY n
        LOOP
            outcome := CASE WHEN head.sequence IS NULL THEN 'again' ELSE 'duplicate' END;
            draft := head.n - 1;
            stream := head.stream_id;
            segment := head.segment;
            first := coalesce(head.sequence, head.original - 1);
            skipped := skipped || head.n;
            RETURN NEXT;
        END LOOP;
    END IF;
    IF cardinality(skipped) = cardinality(streams) THEN
        RETURN QUERY
            SELECT 'head', NULL::integer, h.stream_id, h.segment, NULL::bigint, h.sequence, NULL::bigint, NULL::integer[]
              FROM heads h WHERE h.stream_id = ANY (locked);
        RETURN;
    END IF;

    -- The common case, without a sort and a join: one stream, nothing to skip, no segment to fill.
    IF cardinality(locked) = 1 AND rolling IS NULL AND skipped = '{}' THEN
        size := heads_were[1];
        UPDATE heads h SET sequence = h.sequence + cardinality(streams), bytes = h.bytes + batch_bytes
         WHERE h.stream_id = locked[1]
        RETURNING 'run', h.stream_id, h.segment, size + 1, h.sequence, (extract(epoch FROM at) * 1000000)::bigint,
                  h.watchers, h.segment_id, h.partition_id
             INTO outcome, stream, segment, first, last, appended_at_us, watchers, in_segment, in_partition;
        IF cardinality(streams) = 1 THEN
            INSERT INTO events (segment_id, sequence, mask, partition_id, payload, appended_at)
            VALUES (in_segment, last, masks[1], in_partition, payloads[1], at);
        ELSE
            INSERT INTO events (segment_id, sequence, mask, partition_id, payload, appended_at)
            SELECT in_segment, size + v.n, v.mask, in_partition, v.payload, at
              FROM unnest(masks, payloads) WITH ORDINALITY AS v (mask, payload, n);
        END IF;
        RETURN NEXT;
        IF plain THEN
            RETURN;
        END IF;
    ELSE
        -- Most streams stay in their open segment.
        INSERT INTO events (segment_id, sequence, mask, partition_id, payload, appended_at)
        SELECT h.segment_id, h.sequence + row_number() OVER (PARTITION BY v.stream_id ORDER BY v.n),
               v.mask, h.partition_id, v.payload, at
          FROM unnest(streams, masks, payloads) WITH ORDINALITY AS v (stream_id, mask, payload, n)
          JOIN heads h USING (stream_id)
         WHERE v.n <> ALL (skipped) AND (rolling IS NULL OR v.stream_id <> ALL (rolling));

        RETURN QUERY
            UPDATE heads h
               SET sequence = h.sequence + t.count, bytes = h.bytes + t.bytes
              FROM (SELECT v.stream_id, count(*) AS count, sum(octet_length(v.payload)) AS bytes
                      FROM unnest(streams, payloads) WITH ORDINALITY AS v (stream_id, payload, n)
                     WHERE v.n <> ALL (skipped) AND (rolling IS NULL OR v.stream_id <> ALL (rolling))
                     GROUP BY v.stream_id) AS t
             WHERE h.stream_id = t.stream_id
            RETURNING 'run', NULL::integer, h.stream_id, h.segment,
                      h.sequence - t.count + 1, h.sequence, (extract(epoch FROM at) * 1000000)::bigint, h.watchers;

        -- A stream that fills its segment: the event that fills it seals it, and the next one is opened at once, so
        -- that the head always names the segment of the next event. Partitions are created elsewhere, ahead of need.
        -- One pass, even if segments are small, because other transactions wait for these locks.
        FOR head IN
            SELECT h.*, h.sequence AS was, s.segment_events_max, s.segment_bytes_max
              FROM heads h JOIN streams s ON s.id = h.stream_id
             WHERE h.stream_id = ANY (rolling) ORDER BY h.stream_id
        LOOP
            stream := head.stream_id;
            appended_at_us := (extract(epoch FROM at) * 1000000)::bigint;
            watchers := head.watchers;
            outcome := 'run';
            draft := NULL;
            first := head.sequence + 1;
            in_segments := '{}';
            in_partitions := '{}';
            FOR size IN
                SELECT octet_length(v.payload)
                  FROM unnest(streams, payloads) WITH ORDINALITY AS v (stream_id, payload, n)
                 WHERE v.stream_id = head.stream_id AND v.n <> ALL (skipped)
                 ORDER BY v.n
            LOOP
                in_segments := array_append(in_segments, head.segment_id);
                in_partitions := array_append(in_partitions, head.partition_id);
                head.sequence := head.sequence + 1;
                head.bytes := head.bytes + size;
                CONTINUE WHEN head.sequence - head.first + 1 < head.segment_events_max
                          AND head.bytes < head.segment_bytes_max;
                segment := head.segment;
                last := head.sequence;
                RETURN NEXT;
                first := last + 1;
                UPDATE segments s SET last = head.sequence, bytes = head.bytes, sealed_at = at
                 WHERE s.id = head.segment_id;
                INSERT INTO segments (uuid, stream_id, partition_id, first)
                SELECT gen_random_uuid(), head.stream_id, current_partition, head.sequence + 1 FROM log_state
                RETURNING id, uuid, partition_id, segments.first
                     INTO head.segment_id, head.segment, head.partition_id, head.first;
                head.bytes := 0;
            END LOOP;
            IF first <= head.sequence THEN
                segment := head.segment;
                last := head.sequence;
                RETURN NEXT;
            END IF;
            INSERT INTO events (segment_id, sequence, mask, partition_id, payload, appended_at)
            SELECT in_segments[p.rank], head.was + p.rank, p.mask, in_partitions[p.rank], p.payload, at
              FROM (SELECT v.mask, v.payload, row_number() OVER (ORDER BY v.n) AS rank
                      FROM unnest(streams, masks, payloads) WITH ORDINALITY AS v (stream_id, mask, payload, n)
                     WHERE v.stream_id = head.stream_id AND v.n <> ALL (skipped)) AS p;
            UPDATE heads h
               SET segment_id = head.segment_id, segment = head.segment, partition_id = head.partition_id,
                   first = head.first, sequence = head.sequence, bytes = head.bytes
             WHERE h.stream_id = head.stream_id;
        END LOOP;
    END IF;

    IF plain THEN
        RETURN;
    END IF;
    SELECT array_agg(p.sequence ORDER BY p.n),
           array_agg((SELECT s.uuid FROM segments s WHERE s.stream_id = p.stream_id AND s.first <= p.sequence
                       ORDER BY s.first DESC, s.id DESC LIMIT 1) ORDER BY p.n)
      INTO given, given_in
      FROM (SELECT v.n, v.stream_id, CASE WHEN v.n <> ALL (skipped) THEN b.sequence + row_number() OVER (
                       PARTITION BY v.stream_id, v.n = ANY (skipped) ORDER BY v.n) END AS sequence
              FROM unnest(streams) WITH ORDINALITY AS v (stream_id, n)
              JOIN unnest(locked, heads_were) AS b (stream_id, sequence) USING (stream_id)) AS p;

    -- Store the positions of the producers' numbers. Slots are overwritten; of two numbers for one slot the higher one
    -- is stored.
    IF numbers IS NOT NULL THEN
        WITH placed AS (
            SELECT * FROM unnest(streams, clients, incarnations, numbers, given, given_in)
                AS v (stream_id, client_id, incarnation, number, sequence, segment)
             WHERE v.sequence IS NOT NULL AND v.number IS NOT NULL
        ), remembered AS (
            INSERT INTO producer_numbers AS f
                   (stream_id, client_id, incarnation, slot, number, segment, sequence)
            SELECT DISTINCT ON (p.stream_id, p.client_id, p.incarnation, p.number % producer_window)
                   p.stream_id, p.client_id, p.incarnation, (p.number % producer_window)::integer, p.number,
                   p.segment, p.sequence
              FROM placed p
             ORDER BY p.stream_id, p.client_id, p.incarnation, p.number % producer_window, p.number DESC
                ON CONFLICT (stream_id, client_id, incarnation, slot) DO UPDATE
               SET number = EXCLUDED.number, segment = EXCLUDED.segment, sequence = EXCLUDED.sequence
        )
        INSERT INTO producers AS q (stream_id, client_id, incarnation, highest_number)
        SELECT p.stream_id, p.client_id, p.incarnation, max(p.number)
          FROM placed p
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
            ON CONFLICT (stream_id, client_id, incarnation) DO UPDATE
           SET highest_number = greatest(q.highest_number, EXCLUDED.highest_number), last_seen_at = EXCLUDED.last_seen_at;
    END IF;

    IF tokens IS NOT NULL THEN
        INSERT INTO idempotency_digests (slot, stream_id, digest, segment, sequence)
        SELECT floor(extract(epoch FROM at) / 86400)::bigint % 4, v.stream_id, v.digest, v.segment, v.sequence
          FROM unnest(streams, tokens, given, given_in) AS v (stream_id, digest, sequence, segment)
         WHERE v.sequence IS NOT NULL AND v.digest <> '';
    END IF;

    -- The state of keyed streams: of several events of a key the last one is stored; a tombstone ends the key.
    IF keys IS NOT NULL THEN
        WITH latest AS (
            SELECT DISTINCT ON (v.stream_id, v.key)
                   v.stream_id, sha256(convert_to(v.key, 'UTF8')) AS digest, v.key, v.segment, v.sequence, v.tombstone
              FROM unnest(streams, keys, given, given_in, tombstones)
                   AS v (stream_id, key, sequence, segment, tombstone)
              JOIN streams s ON s.id = v.stream_id AND s.keyed
             WHERE v.sequence IS NOT NULL AND v.key <> ''
             ORDER BY v.stream_id, v.key, v.sequence DESC
        ), ended AS (
            DELETE FROM keyed_state k USING latest l
             WHERE l.tombstone = 1 AND (k.stream_id, k.digest) = (l.stream_id, l.digest)
        )
        INSERT INTO keyed_state AS k (stream_id, digest, key, segment, sequence)
        SELECT l.stream_id, l.digest, l.key, l.segment, l.sequence
          FROM latest l WHERE l.tombstone = 0
         ORDER BY l.stream_id, l.digest
            ON CONFLICT (stream_id, digest) DO UPDATE
           SET segment = EXCLUDED.segment, sequence = EXCLUDED.sequence,
               mask = NULL, appended_at = NULL, payload = NULL;
    END IF;
    IF skipped <> '{}' THEN
        RETURN QUERY
            SELECT 'head', NULL::integer, h.stream_id, h.segment, NULL::bigint, h.sequence, NULL::bigint, NULL::integer[]
              FROM heads h WHERE h.stream_id = ANY (locked);
    END IF;
END
$$;

-- Seal the open segments of streams and open new ones; empty segments only with `even_empty`. The heads are locked in stream
-- order, to the end of the transaction.
CREATE OR REPLACE FUNCTION roll_segments(stream_ids bigint[], even_empty boolean)
RETURNS TABLE (stream bigint, sealed uuid, segment uuid, first bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    head record;
BEGIN
    FOR head IN
        SELECT * FROM heads h WHERE h.stream_id = ANY (stream_ids) ORDER BY h.stream_id FOR NO KEY UPDATE
    LOOP
        CONTINUE WHEN NOT even_empty AND head.sequence < head.first;
        UPDATE segments s SET last = head.sequence, bytes = head.bytes, sealed_at = clock_timestamp()
         WHERE s.id = head.segment_id;
        INSERT INTO segments (uuid, stream_id, partition_id, first)
        SELECT gen_random_uuid(), head.stream_id, current_partition, head.sequence + 1 FROM log_state
        RETURNING id, segments.uuid, partition_id, segments.first
             INTO head.segment_id, segment, head.partition_id, first;
        UPDATE heads h
           SET segment_id = head.segment_id, segment = roll_segments.segment, partition_id = head.partition_id,
               first = roll_segments.first, bytes = 0
         WHERE h.stream_id = head.stream_id;
        stream := head.stream_id;
        sealed := head.segment;
        RETURN NEXT;
    END LOOP;
END
$$;

-- The life of the server for which the log was proved; null: it must be proved before anything is appended.
CREATE OR REPLACE FUNCTION proven_life() RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT life FROM incarnation
     WHERE xmin = written_by AND started = pg_postmaster_start_time()
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
$$;

-- Prove, once for each life of the server, that the log holds what it acknowledged. Nothing is appended before. The caller has
-- locked the head of `system`, and `proven_life()` is null.
--
-- The reasons: `unproven`, there was no mark (high_water_mark.py); `restored`, the server is another one, on another timeline, or
-- does not have the marked event in the marked life. In both cases all streams get a new segment, because sequences may be assigned
-- again. `crashed`: only async streams get one: a crash recovery may lose commits that did not wait for the disk. Null: nothing is
-- missing, at the first start or after an orderly stop. `before` is the life until now.
CREATE OR REPLACE FUNCTION prove_continuity(mark_life uuid, mark_before uuid, mark_segment uuid, mark_sequence bigint)
RETURNS TABLE (reason text, streams bigint, before uuid, life uuid) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    identifier bigint := (SELECT system_identifier FROM pg_control_system());
    line       integer := ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::integer;
    state      record;
BEGIN
    SELECT * INTO state FROM log_state;
    IF state.life IS NULL THEN
        reason := NULL;  -- nothing was ever appended
    ELSIF (state.system_identifier, state.timeline) IS DISTINCT FROM (identifier, line) THEN
        reason := 'restored';
    ELSIF mark_life IS NULL THEN
        reason := 'unproven';
    ELSIF (state.life IS DISTINCT FROM mark_life AND state.life IS DISTINCT FROM mark_before)
       OR (mark_segment IS NOT NULL AND NOT holds_event(mark_segment, mark_sequence)) THEN
        reason := 'restored';
    ELSIF NOT EXISTS (SELECT FROM incarnation WHERE xmin = written_by) THEN
        reason := 'crashed';
    END IF;
    IF reason = 'crashed' THEN
        SELECT count(*) INTO streams
          FROM roll_segments((SELECT array_agg(id) FROM streams WHERE durability = 'async'), true);
    ELSIF reason IS NOT NULL THEN
        SELECT count(*) INTO streams FROM roll_segments((SELECT array_agg(stream_id) FROM heads), true);
        UPDATE log_state SET history = gen_random_uuid();
    END IF;
    before := state.life;
    life := gen_random_uuid();
    UPDATE log_state SET system_identifier = identifier, timeline = line, life = prove_continuity.life;
    DELETE FROM incarnation;
    INSERT INTO incarnation (life, database, started, written_by)
    SELECT prove_continuity.life, oid, pg_postmaster_start_time(), pg_current_xact_id()::xid
      FROM pg_database WHERE datname = current_database();
    RETURN NEXT;
END
$$;

-- Whether this log assigned an event its sequence.
CREATE OR REPLACE FUNCTION holds_event(in_segment uuid, number bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM segments s LEFT JOIN heads h USING (stream_id)  -- a deleted stream has no head
                    WHERE s.uuid = in_segment AND number BETWEEN s.first - 1 AND COALESCE(s.last, h.sequence))
$$;

-- Whether a reader's cursor proves that the log has lost events: it is ahead of an open segment that is older than this life of the
-- server. A segment that was opened since is trusted, so invented cursors roll a stream at most once per life.
CREATE OR REPLACE FUNCTION shows_loss(stream bigint, in_segment uuid, number bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM heads h JOIN segments s ON s.id = h.segment_id, incarnation i
                    WHERE h.stream_id = stream AND h.segment = in_segment AND h.sequence < number
                      AND s.opened_at < i.since)
$$;
