-- What a client's live registrations that are not suspended by themselves take of every event of a stream; those that take
-- nothing, nearly all, have no row. Written with the versions, under the lock of the client's session.
CREATE TABLE dear_filters (
    client_id       bigint NOT NULL,
    stream_id       bigint NOT NULL,
    registration_id bigint NOT NULL,
    cost            integer NOT NULL,         -- of match/budget.py
    PRIMARY KEY (client_id, stream_id, registration_id)
);
CREATE INDEX dear_filters_by_registration ON dear_filters (registration_id);
