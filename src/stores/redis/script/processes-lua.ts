/** The caller, its clock, and the list of the processes that use the store. */
export const PROCESSES = `
local me = { name = ARGV[1], lease_us = tonumber(ARGV[2]), epoch = tonumber(ARGV[3]), clock_us = tonumber(ARGV[5]) }
if not me.clock_us then
  local time = redis.call('TIME')
  me.clock_us = time[1] * 1000000 + time[2]
  -- The deadline of the call has passed, and the caller has given up: it would neither use nor return leased units.
  if ARGV[4] ~= '0' and me.clock_us > tonumber(ARGV[4]) then return { me.clock_us, -1 } end
end

-- One key that cannot be read must not make the store unusable: it is renamed, and kept for a day.
local function set_aside(key)
  redis.call('RENAME', key, key .. ':damaged')
  redis.call('PEXPIRE', key .. ':damaged', 86400000)
end

-- Adds this process to those that use the store, or removes it if its lease is 0, and returns their number. If the
-- server is out of memory, it refuses commands that need memory, but only until the script has written. So the first
-- write must be such a command.
local function count_processes(key)
  if me.lease_us > 0 then
    local added = redis.pcall('ZADD', key, me.clock_us + me.lease_us, me.name)
    if type(added) == 'table' then
      if not added.err:find('WRONGTYPE', 1, true) then error(added) end
      set_aside(key)
      redis.call('ZADD', key, me.clock_us + me.lease_us, me.name)
    end
    redis.call('PEXPIRE', key, math.ceil(me.lease_us / 1000) * 2)
  else
    redis.call('ZREM', key, me.name)
  end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', me.clock_us)
  return redis.call('ZCARD', key)
end
if ARGV[6] == '-1' then return { me.clock_us, 0, count_processes(KEYS[1]) } end
`;
