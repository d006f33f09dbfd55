-- ARGV[4..8]: the most events, the most bytes, the producer window, its lifetime in seconds, the channel to publish to. ARGV[9]:
-- '1' if the drafts are plain: then they are pairs of mask and payload. Otherwise a draft is mask, payload, producer
-- (client:incarnation, or empty), its number and the number's slot in the window, token.
-- All drafts are stored (or found to be duplicates), or none. Numbers are compared as texts: Lua's are exact only up to 2^53.
-- Returns {uuid, microseconds, sequence of each, negative for a duplicate, last sequence}, of plain drafts the sequence of the
-- first alone; or {'', index of the refused draft, highest}.
local events_max, bytes_max, window = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local given, earlier, highest, next = {}, {}, {}, last
local plain = ARGV[9] == '1'

local function known(producer, number, slot, token)
    if producer ~= '' then
        local found = earlier[producer .. '=' .. number]
        local stored = redis.call('HGET', KEYS[3], producer .. ':' .. slot)
        if not found and stored then
            local n, sequence = string.match(stored, '(%d+):(%d+)')
            found = n == number and sequence
        end
        if found then return tonumber(found) end
    end
    return token ~= '' and tonumber(earlier['t' .. token] or redis.call('HGET', KEYS[4], token) or nil)
end

for at = 10, plain and 9 or #ARGV, 6 do
    local producer, number, slot, token = ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5]
    local found = known(producer, number, slot, token)
    if found then
        given[#given + 1] = -found
    else
        if producer ~= '' then
            local top = highest[producer] or redis.call('HGET', KEYS[3], producer) or '0'
            if tonumber(number) <= tonumber(top) - window then
                return {'', #given, top}
            end
            highest[producer] = tonumber(number) > tonumber(top) and number or top
            earlier[producer .. '=' .. number] = next + 1
        end
        next = next + 1
        given[#given + 1] = next
        if token ~= '' then earlier['t' .. token] = next end
    end
end

local time = redis.call('TIME')
local now = time[1] .. string.format('%06d', tonumber(time[2]))
for at = 10, plain and #ARGV or 9, 2 do
    next = next + 1
    redis.call('XADD', KEYS[2], next .. '-0', 'm', ARGV[at], 'p', ARGV[at + 1], 't', now, 'k', '')
    bytes = bytes + #ARGV[at + 1]
end
for index, sequence in ipairs(given) do
    if sequence > 0 then
        local at = 10 + (index - 1) * 6
        local payload, producer, token = ARGV[at + 1], ARGV[at + 2], ARGV[at + 5]
        redis.call('XADD', KEYS[2], sequence .. '-0', 'm', ARGV[at], 'p', payload, 't', now, 'k', token)
        bytes = bytes + #payload
        if producer ~= '' then
            redis.call('HSET', KEYS[3], producer .. ':' .. ARGV[at + 4], ARGV[at + 3] .. ':' .. sequence,
                producer, highest[producer])
        end
        if token ~= '' then redis.call('HSET', KEYS[4], token, sequence) end
    end
end
local function is_full()
    return next - first + 1 > events_max or (bytes > bytes_max and first < next)
end

if is_full() then
    while is_full() do
        local count = math.max(next - first + 1 - events_max, 10)
        local found = redis.call('XRANGE', KEYS[2], first .. '-0', '+', 'COUNT', count)
        if #found == 0 then error('events are missing') end
        for _, oldest in ipairs(found) do
            if not is_full() then break end
            local fields = oldest[2]
            bytes = bytes - #fields[4]
            if fields[8] ~= '' then redis.call('HDEL', KEYS[4], fields[8]) end
            first = first + 1
        end
    end
    redis.call('XTRIM', KEYS[2], 'MINID', first .. '-0')
end
redis.call('HSET', KEYS[1], 'first', first, 'last', next, 'bytes', bytes)
redis.call('EXPIRE', KEYS[3], ARGV[7])
if next > last then redis.call('PUBLISH', ARGV[8], next) end
return {uuid, now, plain and last + 1 or given, next}
