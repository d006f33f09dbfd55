-- The beginning of every script. KEYS: meta, events, numbers, tokens of one stream. ARGV[1]: a new UUID, used if continuity
-- cannot be proved: the ring is missing, or was written by another run of Redis, or in another history of the database, in which
-- the stream's number may be of another stream. ARGV[2]: the history as the caller knows it; ARGV[3]: '1' if it has just read it.
-- Otherwise the answer to another history is {'history'}, and nothing is changed. Release 0.1 writes rings without a history.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local written = redis.call('HMGET', KEYS[1], 'run', 'history')
local lost = written[1] ~= run
local other = written[2] and written[2] ~= ARGV[2]
if other and not lost and ARGV[3] ~= '1' then
    return {'history'}
end
if lost or other then
    redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
    redis.call('HSET', KEYS[1], 'run', run, 'uuid', ARGV[1], 'first', 1, 'last', 0, 'bytes', 0)
end
if lost or written[2] ~= ARGV[2] then
    redis.call('HSET', KEYS[1], 'history', ARGV[2])
end
local meta = redis.call('HMGET', KEYS[1], 'uuid', 'first', 'last', 'bytes')
local uuid, first, last, bytes = meta[1], tonumber(meta[2]), tonumber(meta[3]), tonumber(meta[4])
