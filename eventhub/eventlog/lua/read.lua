-- ARGV[2], ARGV[3]: the range of sequences. Returns {uuid, first, last, events}.
return {uuid, first, last, redis.call('XRANGE', KEYS[2], ARGV[2] .. '-0', ARGV[3] .. '-0')}
