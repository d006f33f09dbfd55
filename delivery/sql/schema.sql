-- What is owed to endpoints, and how far each stream has been matched for them.

-- One row per stream that has ever had a callback: the lease and the checkpoint together, so that one conditional UPDATE
-- checks the epoch and moves the position in the transaction that writes the deliveries.
CREATE TABLE forwarding (
    stream_id   bigint PRIMARY KEY REFERENCES streams,
    owner       uuid,                         -- the forwarder that holds the lease, if it has not expired
    epoch       bigint NOT NULL DEFAULT 0,    -- rises with every change of the owner
    expires_at  timestamptz NOT NULL DEFAULT '-infinity',
    segment     uuid NOT NULL,                -- events up to this cursor are matched, and their deliveries written ...
    sequence    bigint NOT NULL,
    endpoint_id bigint NOT NULL DEFAULT 0     -- ... and of the next event those up to this endpoint (0: none)
) WITH (fillfactor = 40);

-- The forwarders that live: those seen within the time of a lease share the streams.
CREATE TABLE forwarders (
    id         uuid PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 60);

-- One event owed to one endpoint. Partitioned by the events' groups, so that this key is unique, and retired with them.
CREATE TABLE deliveries (
    group_id        integer NOT NULL,
    endpoint_id     bigint NOT NULL,
    segment_id      bigint NOT NULL,
    sequence        bigint NOT NULL,
    run             integer NOT NULL DEFAULT 0, -- 0: live
    stream_id       bigint NOT NULL,
    ordered         boolean NOT NULL DEFAULT false, -- the endpoint's setting when the row was written
    registrations   bigint[] NOT NULL,        -- those that matched, ascending
    shape           bigint[],                 -- their versions, whose reports say what is told; null: the whole event
    state           text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'dead', 'cancelled')),
    attempts        integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(), -- while claimed: when the claim ends
    claim           uuid,                     -- results are written only by whoever still holds it
    payload         bytea,                    -- the event's stored bytes, once the delivery has outlived its group
    gap_first       bigint,                   -- not null: no event is owed, but word that those from here to `sequence`,
    gap_why         text,                     -- before the first event of the segment, were dropped unmatched, and why
    created_at      timestamptz NOT NULL DEFAULT now(),
    finished_at     timestamptz,
    PRIMARY KEY (group_id, endpoint_id, segment_id, sequence, run)
) PARTITION BY LIST (group_id);
CREATE INDEX deliveries_parallel ON deliveries (endpoint_id, next_attempt_at)
    WHERE state = 'pending' AND NOT ordered;
CREATE INDEX deliveries_ordered ON deliveries (endpoint_id, stream_id, run, sequence)
    WHERE state = 'pending' AND ordered;
CREATE INDEX deliveries_dead ON deliveries (endpoint_id) WHERE state = 'dead';

-- An ordered lane in work: only who holds the token posts its oldest delivery.
CREATE TABLE lanes (
    endpoint_id bigint NOT NULL,
    stream_id   bigint NOT NULL,
    run         integer NOT NULL,
    token       uuid NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (endpoint_id, stream_id, run)
) WITH (fillfactor = 60);

-- An event that matched so many endpoints that its deliveries are written in pieces, beside the stream's other events.
CREATE TABLE fanouts (
    group_id      integer NOT NULL,
    stream_id     bigint NOT NULL,
    segment_id    bigint NOT NULL,
    sequence      bigint NOT NULL,
    endpoints     bigint[] NOT NULL,          -- ascending
    registrations bigint[] NOT NULL,          -- those that matched, of the first endpoint, of the second, ...
    ends          bigint[] NOT NULL,          -- where in it each endpoint's last one is
    shapes        text[] NOT NULL DEFAULT '{}', -- of each endpoint, as arrays; empty: nobody is told less than the event
    total         integer NOT NULL,           -- so many endpoints
    done          integer NOT NULL DEFAULT 0, -- so many have their delivery; the row goes when all have
    PRIMARY KEY (stream_id, sequence)
);
ALTER TABLE fanouts ALTER COLUMN endpoints SET STORAGE EXTERNAL, ALTER COLUMN registrations SET STORAGE EXTERNAL,
    ALTER COLUMN ends SET STORAGE EXTERNAL;   -- compressing a million numbers takes longer than writing them

-- One try of one delivery.
CREATE TABLE attempts (
    at            timestamptz NOT NULL,       -- when the request was sent
    group_id      integer NOT NULL,
    endpoint_id   bigint NOT NULL,
    segment_id    bigint NOT NULL,
    sequence      bigint NOT NULL,
    run           integer NOT NULL,
    number        integer NOT NULL,           -- 1, 2, 3, ...
    outcome       text NOT NULL,              -- `delivered`, or why not: `status`, `timeout`, `refused_address`, ...
    status        integer,                    -- of the answer, if there was one
    duration_ms   integer NOT NULL,
    url           text NOT NULL,
    request       text NOT NULL,              -- the request's headers, without the signature
    response      text NOT NULL               -- the answer's headers and the beginning of its body, or the error
) PARTITION BY RANGE (at);
CREATE INDEX attempts_by_delivery ON attempts (endpoint_id, segment_id, sequence, run, at);
