-- Counts requests in sliding windows, for all limits of one request at once.
-- KEYS: the buckets. ARGV: a window's length in milliseconds; for each bucket its limit, and 1 to count or 0 to read.
-- Returns for each bucket: whether there was room, the previous and current counts, milliseconds since the window began.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local length = tonumber(ARGV[1])
local result = {}
for i, key in ipairs(KEYS) do
    local limit, is_counted = tonumber(ARGV[2 * i]), ARGV[2 * i + 1] == '1'
    local start, current, previous = now, 0, 0
    local kept = redis.call('GET', key)
    if kept then
        local a, b, c = string.match(kept, '^(%d+) (%d+) (%d+)$')
        start, current, previous = tonumber(a), tonumber(b), tonumber(c)
    end
    if now - start >= 2 * length then
        start, current, previous = now, 0, 0
    elseif now < start then
        start = now
    elseif now - start >= length then
        start, current, previous = start + length, 0, current
    end
    local had_room = math.floor(previous * (length - (now - start)) / length) + current < limit
    if had_room and is_counted then
        current = current + 1
        redis.call('SET', key, string.format('%d %d %d', start, current, previous), 'PX', 2 * length)
    end
    result[#result + 1] = had_room and 1 or 0
    result[#result + 1] = previous
    result[#result + 1] = current
    result[#result + 1] = now - start
end
return result
