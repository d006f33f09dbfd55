-- Which client was told what of a stream over which connection, from where to where: one row for each time that it began to
-- listen (FOX-23). Requests that follow one another prolong a row. Partitioned by day (UTC), a day leaves whole.
CREATE SEQUENCE listen_ids;
CREATE TABLE listens (
    at            timestamptz NOT NULL,       -- when it began
    id            bigint NOT NULL,
    zone_id       bigint NOT NULL,            -- of the client
    client_id     bigint NOT NULL,
    stream_id     bigint NOT NULL,
    node          text NOT NULL,              -- the process that told it, which is named anew at every start
    door          text NOT NULL,              -- websocket, sse, poll, lines, local; many: more began than are on record
    name          text NOT NULL,              -- the listen's, on a websocket
    start         text NOT NULL,              -- what it began from: cursor (the client's word of what it had), now, oldest,
                                              -- boot, time, gap (behind what was missing), state, continued
    segment       uuid,                       -- it is told what comes after this event ...
    sequence      bigint NOT NULL,
    mask          bigint NOT NULL,            -- ... on these channels,
    filter        text,                       -- of what this lets through, in predicate form; null: registrations, or too long
    registrations bigint[] NOT NULL,          -- instead of a filter
    wish          text NOT NULL,              -- equal for the same mask, filter and registrations
    told_segment  uuid,                       -- it was told all of that up to this event, as of `seen_at`:
    told_sequence bigint NOT NULL,
    told          bigint NOT NULL,            -- so many events
    seen_at       timestamptz NOT NULL,
    ended_at      timestamptz,                -- null: it goes on, or its process was killed
    why           text,                       -- stopped, left, slow_reader, gap, continued, or the code of an error
    PRIMARY KEY (at, id)
) PARTITION BY RANGE (at);
CREATE INDEX listens_of_client ON listens (client_id, at DESC, id DESC);
