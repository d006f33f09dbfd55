-- ARGV[4], ARGV[5]: the range of sequences. Returns {uuid, first, last, events}.
return {uuid, first, last, redis.call('XRANGE', KEYS[2], ARGV[4] .. '-0', ARGV[5] .. '-0')}
