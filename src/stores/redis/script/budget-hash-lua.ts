/** Reads and writes the hash of a budget: only the fields that the call needs or has changed. */
export const BUDGET_HASH = `
local STATE, MEMBER, LEASE = '<ddddddddddddddddddddsdd', '<dddddddds', '<ds'
local budgets = {}
-- A call cleans up at most this many old entries.
local CLEANED = 16

-- A field that was not changed is not written back.
local function parse_member(name, packed)
  local m = { name = name, packed = packed }
  m.pending, m.lease_us, m.epoch, m.entry, m.entry_us, m.turn, m.start, m.due_us, m.claim =
    struct.unpack(MEMBER, packed)
  return m
end

local function parse(b, packed)
  local unpack_struct, at, windows, claims = struct.unpack, 1, 0, 0
  b.written, b.pending, b.last_us, b.rings, b.shift_us, b.seen_us, b.expires_us, b.spacing_us, b.created_us,
    b.alive_us, b.others_us, b.head, b.tail, b.head_start, b.turns_end, b.head_due_us, b.waiting, b.lease_head,
    b.lease_tail, b.lease_head_us, b.writer, windows, claims, at = unpack_struct(STATE, packed)
  b.has_rings = b.rings == 1
  for index = 1, windows do
    local limit, span_us, length_us, grain, capacity
    limit, span_us, length_us, grain, capacity, at = unpack_struct('<ddddd', packed, at)
    b.windows[index] = { limit = limit, span_us = span_us, length_us = length_us, grain = grain, capacity = capacity }
  end
  for index = 1, claims do
    local count, text
    count, text, at = unpack_struct('<ds', packed, at)
    b.claims[index] = { count = count, text = text }
  end
end

local function new_budget(key)
  return { key = key, members = {}, windows = {}, claims = {}, turns = {}, leases = {}, stamps = {}, puts = {},
    gone = {}, has_rings = false, written = 0, pending = 0, last_us = 0, shift_us = 0, seen_us = 0, expires_us = 0,
    spacing_us = 0, created_us = me.clock_us, alive_us = -1, others_us = -1, head = 1, tail = 1, head_start = 0,
    turns_end = 0, head_due_us = -1, waiting = 0, lease_head = 1, lease_tail = 1, lease_head_us = -1, writer = '' }
end

local function budget_of(position)
  local b = budgets[position]
  if b then return b end
  local key = KEYS[tonumber(position)]
  local fields = redis.pcall('HMGET', key, 's', 'm:' .. me.name)
  b = new_budget(key)
  local is_wrong_type = fields.err and fields.err:find('WRONGTYPE', 1, true)
  if fields.err and not is_wrong_type then error(fields) end
  local is_read = not is_wrong_type and pcall(function()
    if fields[1] then parse(b, fields[1]) end
    if fields[1] and fields[2] then
      b.mine = parse_member(me.name, fields[2])
      b.members[me.name] = b.mine
    end
  end)
  if not is_read or fields[2] and not fields[1] then
    -- The budget counts as lost.
    set_aside(key)
    b = new_budget(key)
  end
  -- If the clock was set back, or another machine took over, the time of the budget continues from the last time seen.
  local now_us = me.clock_us + b.shift_us
  if now_us < b.seen_us then
    b.shift_us = b.shift_us + b.seen_us - now_us
    now_us = b.seen_us
    -- The time since then is not known, so the budget is older than it seems. Its users have asked within the last lease:
    -- with this created_us they do not take it for lost.
    b.created_us = math.min(b.created_us, now_us - me.lease_us)
  end
  b.now_us = now_us
  budgets[position] = b
  return b
end

-- Entries of other processes, read when they are needed. A damaged entry counts as missing.
local function read(b, field, parse_field)
  local packed = redis.call('HGET', b.key, field)
  if not packed then return nil end
  local is_read, value = pcall(parse_field, packed)
  return is_read and value or nil
end

local function member_of(b, name)
  local m = b.members[name]
  if m == nil then
    m = read(b, 'm:' .. name, function(packed) return parse_member(name, packed) end) or false
    b.members[name] = m
  end
  return m or nil
end

local function turn_of(b, number)
  local name = b.turns[number]
  if name == nil then
    name = redis.call('HGET', b.key, 't:' .. number)
    b.turns[number] = name
  end
  return name or nil
end

local function lease_of(b, number)
  local entry = b.leases[number]
  if entry == nil then
    entry = read(b, 'l:' .. number, function(packed)
      local check_us, name = struct.unpack(LEASE, packed)
      return { check_us = check_us, name = name }
    end) or false
    b.leases[number] = entry
  end
  return entry or nil
end

local function put_field(b, field, value)
  local n = #b.puts
  b.puts[n + 1], b.puts[n + 2] = field, value
end

local function save(b)
  local windows, longest_us, pack_struct = '', b.spacing_us, struct.pack
  for name, m in pairs(b.members) do
    if m then
      local packed = pack_struct(MEMBER, m.pending, m.lease_us, m.epoch, m.entry, m.entry_us, m.turn, m.start, m.due_us,
        m.claim)
      if packed ~= m.packed then put_field(b, 'm:' .. name, packed) end
    end
  end
  if not b.mine and b.written == 0 and b.alive_us < 0 then return end
  for i = 1, #b.windows do
    local w = b.windows[i]
    if w.span_us > longest_us then longest_us = w.span_us end
    windows = windows .. pack_struct('<ddddd', w.limit, w.span_us, w.length_us, w.grain, w.capacity)
  end
  for i = 1, #b.claims do windows = windows .. pack_struct('<ds', b.claims[i].count, b.claims[i].text) end
  -- After needed_us all leases, turns and windows have ended, so the key can delay no request.
  local needed_us = math.max(me.lease_us, b.alive_us - b.now_us) + longest_us + 1000000
  local is_short = b.expires_us < me.clock_us + needed_us
  if is_short then b.expires_us = me.clock_us + 2 * needed_us end
  local packed = pack_struct(STATE, b.written, b.pending, b.last_us, b.has_rings and 1 or 0, b.shift_us, b.now_us,
    b.expires_us, b.spacing_us, b.created_us, b.alive_us, b.others_us, b.head, b.tail, b.head_start, b.turns_end,
    b.head_due_us, b.waiting, b.lease_head, b.lease_tail, b.lease_head_us, b.writer, #b.windows, #b.claims) .. windows
  local puts, from = b.puts, 1
  -- In parts, because unpack puts all its values on Lua's small stack.
  while #puts - from > 200 do
    redis.call('HSET', b.key, unpack(puts, from, from + 199))
    from = from + 200
  end
  redis.call('HSET', b.key, 's', packed, unpack(puts, from))
  if #b.gone > 0 then redis.call('HDEL', b.key, unpack(b.gone)) end
  if is_short then redis.call('PEXPIRE', b.key, math.ceil(2 * needed_us / 1000)) end
end
`;
