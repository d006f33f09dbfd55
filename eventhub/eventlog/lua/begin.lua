-- The beginning of every script. KEYS: meta, events, numbers, tokens of one stream. ARGV[1]: a new UUID, used if continuity
-- cannot be proved: the ring is missing, or another run of Redis wrote it.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if redis.call('HGET', KEYS[1], 'run') ~= run then
    redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
    redis.call('HSET', KEYS[1], 'run', run, 'uuid', ARGV[1], 'first', 1, 'last', 0, 'bytes', 0)
end
local meta = redis.call('HMGET', KEYS[1], 'uuid', 'first', 'last', 'bytes')
local uuid, first, last, bytes = meta[1], tonumber(meta[2]), tonumber(meta[3]), tonumber(meta[4])
