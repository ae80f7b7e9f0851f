/**
 * The shared budget as a Lua script, which settles and leases on the server in one round trip (law S3).
 *
 * It must behave exactly as `core/limits/shared-budget.ts` with its turn queue, its list of leases and its window log, and
 * uses their order and their names; `test/stores/redis-script.test.ts` runs random traces through both. A change of one needs the same
 * change of the other.
 *
 * A budget is one hash. Field `s` holds the counters, the windows and the different claims. Each process has a field
 * `m:<process>`, each turn `t:<number>`, each entry of the list of leases `l:<number>`, and each stamp
 * `<window>:<mark>`, so that a decision reads and writes a few fields, however many processes and units there are (law
 * S7). Numbers are packed as doubles, which hold microseconds exactly and are ten times as fast as printing and parsing.
 *
 * Each call of the script creates every function again. So there are few functions, helpers that are rarely needed are
 * part of the function that needs them, and shared values are in `me` instead of a dozen captured locals.
 *
 *   KEYS   the budgets, and the list of processes if it is used
 *   ARGV   process, lease in us, epoch, latest time (us of the server's clock, 0 for any), current time (tests only),
 *          the number of settlements, or -1 if only the list of processes is used, the number of reports, the position of
 *          the list of processes or 0, then
 *          for each settlement  budget, leased units or -1, written, returned
 *          for each report      budget, leased units or -1, claim, units sent without a lease, units known in each window,
 *                               age of that knowledge in us or -1, us since the newest of the units sent was written
 *          for each request     number of claims, least, most, number of callers, 1 if the use is wanted, time in us in
 *                               which units may become free, then for each claim  budget, leased units or -1, claim, age of the knowledge in us or -1
 *   reply  the server's time, 0 (or -1 for a call that came too late and had no effect), the number of processes or 0, then
 *          for each request     number of grants, for each its units, the delay in us, 1 if no other process uses the
 *                               budgets, and, if it has fewer units than asked for, the wait in us for the next ones; then, if some caller got none, the wait in
 *                               us and the position of the binding claim; then 1 if another process claims stricter limits,
 *                               then, if it is wanted, the units in use in each window of each claim;
 *                               or -1 and the position of a claim whose budget is younger than the knowledge of it
 */
import { createHash } from "node:crypto";

export const SCRIPT = `
local TURN_US, TURN_TIMEOUT_US, MAX_TURN_US, TURNS_PER_WINDOW, ENTRY_PARTS, CLEANED = 20000, 2000000, 120000000, 4, 32, 16
local STATE, MEMBER, LEASE = '<ddddddddddddddddddddsdd', '<dddddddds', '<ds'
local me = { name = ARGV[1], lease_us = tonumber(ARGV[2]), epoch = tonumber(ARGV[3]), clock_us = tonumber(ARGV[5]) }
if not me.clock_us then
  local time = redis.call('TIME')
  me.clock_us = time[1] * 1000000 + time[2]
  -- The caller has given up by now: it would neither write nor return the units.
  if ARGV[4] ~= '0' and me.clock_us > tonumber(ARGV[4]) then return { me.clock_us, -1 } end
end

-- One key that cannot be read must not take the store away for all: it is set aside for a day.
local function set_aside(key)
  redis.call('RENAME', key, key .. ':damaged')
  redis.call('PEXPIRE', key .. ':damaged', 86400000)
end

-- The number of processes that use the store: this one is added, or removed with a lease of 0. A server without memory
-- refuses only the first write of a script, so that the first write must be one that needs memory.
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

local budgets = {}

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
    -- It counts as lost.
    set_aside(key)
    b = new_budget(key)
  end
  -- If the clock was set back, or another machine took over, time stands still until it has caught up.
  local now_us = me.clock_us + b.shift_us
  if now_us < b.seen_us then
    b.shift_us = b.shift_us + b.seen_us - now_us
    now_us = b.seen_us
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
  -- By then all leases and turns have ended and every window has passed, so the key can delay no request.
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

-- The window log.

local function put(b, index, mark, stamp_us)
  local field, puts = index .. ':' .. mark % b.windows[index].capacity, b.puts
  local n = #puts
  puts[n + 1], puts[n + 2] = field, struct.pack('<d', stamp_us)
  b.stamps[field] = stamp_us
end

local function stamp_of(b, index, unit)
  if unit <= 0 then return -math.huge end
  if unit > b.written then return b.now_us end
  if not b.has_rings then return b.last_us end
  local window = b.windows[index]
  local mark, newest = math.ceil(unit / window.grain), math.floor(b.written / window.grain)
  if mark > newest then return b.last_us end
  if mark <= newest - window.capacity then return -math.huge end
  local field = index .. ':' .. mark % window.capacity
  local stamp_us = b.stamps[field]
  if not stamp_us then
    -- A missing stamp counts as the latest one, so that a damaged key never grants too much.
    local packed = redis.call('HGET', b.key, field)
    stamp_us = packed and #packed == 8 and struct.unpack('<d', packed) or b.last_us
    b.stamps[field] = stamp_us
  end
  return stamp_us
end

local function write(b, units, at_us)
  if b.written > 0 and b.last_us > at_us then at_us = b.last_us end
  if b.written > 0 and not b.has_rings and at_us ~= b.last_us then
    b.has_rings = true
    for index, window in ipairs(b.windows) do
      local newest = math.floor(b.written / window.grain)
      for mark = math.max(1, newest - window.capacity + 1), newest do put(b, index, mark, b.last_us) end
    end
  end
  local first = b.written + 1
  b.written = b.written + units
  b.last_us = at_us
  if not b.has_rings then return end
  for index = 1, #b.windows do
    local window = b.windows[index]
    local newest = math.floor(b.written / window.grain)
    for mark = math.max(math.ceil(first / window.grain), newest - window.capacity + 1), newest do
      put(b, index, mark, at_us)
    end
  end
end

-- Units that a process has written; '' for units of any process.
local function write_by(b, name, units, at_us)
  if b.writer ~= name or name == '' then
    b.others_us = b.written > 0 and b.last_us or -1
    b.writer = name
  end
  write(b, units, at_us)
end

local function write_reserved(b, name, units, at_us)
  b.pending = b.pending - units
  write_by(b, name, units, at_us)
end

-- Units that count now in a window: at most its limit of written ones, and all pending ones.
local function used_units(b, index)
  local window = b.windows[index]
  local low, high = math.max(1, b.written - window.limit + 1), b.written + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if stamp_of(b, index, middle) > b.now_us - window.span_us then high = middle else low = middle + 1 end
  end
  return b.written + 1 - low + b.pending
end

-- Calls back with each window of a claim, in its order: the units in use, 0 for a window that the budget does not have.
local function each_use(b, claim, visit)
  for length_us in claim:gmatch(';[^,;]+,([^,;]+)') do
    local used = 0
    for index = 1, #b.windows do
      if b.windows[index].length_us == tonumber(length_us) then used = used_units(b, index) end
    end
    visit(used)
  end
end

local function free_at(b, units)
  local free_us, unit = 0, b.written + b.pending + units
  if b.spacing_us > 0 then
    if b.pending > 0 then free_us = b.now_us + b.spacing_us
    elseif b.written > 0 then free_us = b.last_us + b.spacing_us end
  end
  for index = 1, #b.windows do
    local window = b.windows[index]
    if unit > window.limit then
      local window_us = stamp_of(b, index, unit - window.limit) + window.span_us
      if window_us > free_us then free_us = window_us end
    end
  end
  return free_us
end

-- As free_at, for units behind others that wait, if all are written as early as the windows permit.
local function expected_at(b, units)
  local expected_us = 0
  if b.spacing_us > 0 then
    if b.pending > 0 then expected_us = b.now_us + b.spacing_us
    elseif b.written > 0 then expected_us = b.last_us + b.spacing_us end
    expected_us = expected_us + (units - 1) * b.spacing_us
  end
  for index = 1, #b.windows do
    local window = b.windows[index]
    local unit, rounds = b.written + b.pending + units - window.limit, 0
    if unit > b.written then rounds = math.ceil((unit - b.written) / window.limit) end
    local window_us = stamp_of(b, index, unit - rounds * window.limit) + window.span_us
    if rounds > 0 then window_us = math.max(b.now_us, window_us) + rounds * window.span_us end
    if window_us > expected_us then expected_us = window_us end
  end
  return expected_us
end

-- The queue of turns.

local function advance_turns(b)
  for _ = 1, CLEANED do
    if b.head >= b.tail then break end
    local name = turn_of(b, b.head)
    local m = name and member_of(b, name)
    if m and m.turn == b.head then
      if m.due_us + TURN_TIMEOUT_US > b.now_us then
        b.head_start, b.head_due_us = m.start, m.due_us
        return
      end
      m.turn = 0
      b.turns[b.head] = false
      b.gone[#b.gone + 1] = 't:' .. b.head
      b.waiting = b.waiting - 1
    end
    b.head = b.head + 1
  end
  b.head_due_us = -TURN_TIMEOUT_US
  -- No process waits, also if the entry of a process was damaged, so that its turn could not be counted.
  if b.head == b.tail then b.head_start, b.waiting = b.turns_end, 0 end
end

local function leave_turn(b, m)
  local turn = m.turn
  if turn == 0 then return end
  m.turn = 0
  b.turns[turn] = false
  b.gone[#b.gone + 1] = 't:' .. turn
  b.waiting = b.waiting - 1
  if turn == b.head then advance_turns(b) end
end

-- How many other processes wait, and the units that are promised to those before this one.
local function others_of(b)
  local others = b.waiting
  if b.mine.turn > 0 then others = others - 1 end
  if others == 0 then return 0, 0 end
  return others, math.max(0, (b.mine.turn > 0 and b.mine.start or b.turns_end) - b.head_start)
end

-- The units of one turn.
local function turn_units(b, least, most, others)
  if b.spacing_us > 0 then return least end
  local limit = math.huge
  for index = 1, #b.windows do limit = math.min(limit, b.windows[index].limit) end
  return math.max(least, math.min(most, math.floor(limit / (TURNS_PER_WINDOW * (others + 1)))))
end

-- The shared budget.

-- Applies the strictest claim for each window. Runs only when the set of different claims has changed.
local function apply_strictest_claims(b)
  local strictest, by_length = {}, {}
  b.spacing_us = 0
  for _, claim in ipairs(b.claims) do
    b.spacing_us = math.max(b.spacing_us, tonumber(claim.text:match('^[^;]*')))
    for limit, length_us, span_us in claim.text:gmatch(';([^,;]+),([^,;]+),([^,;]+)') do
      limit, length_us, span_us = tonumber(limit), tonumber(length_us), tonumber(span_us)
      local known = by_length[length_us]
      if known then
        known.limit = math.min(known.limit, limit)
        known.span_us = math.max(known.span_us, span_us)
      else
        known = { limit = limit, span_us = span_us, length_us = length_us }
        by_length[length_us] = known
        strictest[#strictest + 1] = known
      end
    end
  end
  local is_same = #strictest == #b.windows
  for _, window in ipairs(b.windows) do
    local wanted = by_length[window.length_us]
    is_same = is_same and wanted and wanted.limit == window.limit and wanted.span_us == window.span_us
  end
  if is_same then return end
  -- A window of more than 200 units keeps only every grain-th stamp.
  for _, window in ipairs(strictest) do
    window.grain = math.ceil(window.limit / 200)
    window.capacity = math.ceil(window.limit / window.grain) + 1
  end
  -- No stamp is lost: each unit keeps the most exact stamp of all old windows.
  local stamps = {}
  for index, window in ipairs(b.has_rings and strictest or {}) do
    local newest, oldest_us = math.floor(b.written / window.grain), b.last_us
    for mark = newest, math.max(1, newest - window.capacity + 1), -1 do
      for old = 1, #b.windows do
        local stamp_us = stamp_of(b, old, mark * window.grain)
        if stamp_us ~= -math.huge and stamp_us < oldest_us then oldest_us = stamp_us end
      end
      stamps[#stamps + 1] = { index, mark, oldest_us }
    end
  end
  b.windows, b.stamps = strictest, {}
  for _, stamp in ipairs(stamps) do put(b, stamp[1], stamp[2], stamp[3]) end
end

-- True if another process claims stricter limits. With one claim only there is none.
local function is_stricter_than(b, claim)
  if #b.claims == 1 then return false end
  if b.spacing_us > tonumber(claim:match('^[^;]*')) then return true end
  local own = {}
  for limit, length_us, span_us in claim:gmatch(';([^,;]+),([^,;]+),([^,;]+)') do
    own[tonumber(length_us)] = { limit = tonumber(limit), span_us = tonumber(span_us) }
  end
  for _, window in ipairs(b.windows) do
    local mine = own[window.length_us]
    if not mine or window.limit < mine.limit or window.span_us > mine.span_us then return true end
  end
  return false
end

local function count_claim(b, text, by)
  for index, claim in ipairs(b.claims) do
    if claim.text == text then
      claim.count = claim.count + by
      if claim.count > 0 then return false end
      table.remove(b.claims, index)
      return true
    end
  end
  if by > 0 then b.claims[#b.claims + 1] = { count = 1, text = text } end
  return by > 0
end

local function append_lease(b, m, check_us)
  b.leases[b.lease_tail] = { check_us = check_us, name = m.name }
  put_field(b, 'l:' .. b.lease_tail, struct.pack(LEASE, check_us, m.name))
  m.entry, m.entry_us = b.lease_tail, check_us
  if b.lease_head == b.lease_tail then b.lease_head_us = check_us end
  b.lease_tail = b.lease_tail + 1
end

local function renew(b, m)
  m.lease_us = b.now_us + me.lease_us
  if m.lease_us > b.alive_us then b.alive_us = m.lease_us end
  if m.entry == 0 or m.lease_us - m.entry_us >= me.lease_us / ENTRY_PARTS then append_lease(b, m, m.lease_us) end
end

-- Ends the leases of processes that were silent. True if the set of claims has changed.
local function expire_leases(b)
  local is_changed = false
  for _ = 1, CLEANED do
    if b.lease_head >= b.lease_tail or b.lease_head_us > b.now_us then break end
    local entry = lease_of(b, b.lease_head)
    local m = entry and member_of(b, entry.name)
    if m and m.entry == b.lease_head then
      local left_us = m.lease_us - b.now_us
      -- It was renewed a moment after its entry was made: it ends soon, and so do those behind it.
      if left_us > 0 and left_us <= me.lease_us / ENTRY_PARTS then break end
      local is_kept = left_us > 0
      if not is_kept then
        -- A process sends no leased unit after its lease, so the end of the lease is the latest time of the write.
        if m.pending > 0 then write_reserved(b, m.name, m.pending, math.max(b.last_us, m.lease_us)) end
        m.pending = 0
        is_kept = m.turn > 0 and m.due_us + TURN_TIMEOUT_US > b.now_us
      end
      if is_kept then
        append_lease(b, m, b.now_us + me.lease_us)
      else
        leave_turn(b, m)
        b.members[m.name] = false
        b.gone[#b.gone + 1] = 'm:' .. m.name
        if count_claim(b, m.claim, -1) then is_changed = true end
      end
    end
    b.gone[#b.gone + 1] = 'l:' .. b.lease_head
    b.lease_head = b.lease_head + 1
    b.lease_head_us = -1
    if b.lease_head < b.lease_tail then
      local next_entry = lease_of(b, b.lease_head)
      b.lease_head_us = next_entry and next_entry.check_us or b.now_us
    end
  end
  return is_changed
end

-- It is unknown what a lost call granted or settled. The process reports its leased units; the rest counts as written.
local function correct_leased(b, leased)
  local lost = b.mine.pending - leased
  if lost > 0 then write_reserved(b, me.name, lost, b.now_us) else b.pending = b.pending - lost end
  b.mine.pending, b.mine.epoch = leased, me.epoch
end

local function join(b, claim, leased)
  local mine, is_changed = b.mine, false
  if not mine then
    mine = { name = me.name, claim = claim, pending = 0, lease_us = 0, epoch = me.epoch, entry = 0, entry_us = 0,
      turn = 0, start = 0, due_us = 0 }
    b.members[me.name], b.mine = mine, mine
    is_changed = count_claim(b, claim, 1)
  elseif mine.claim ~= claim then
    local is_gone = count_claim(b, mine.claim, -1)
    is_changed = count_claim(b, claim, 1) or is_gone
    mine.claim = claim
  end
  renew(b, mine)
  if expire_leases(b) then is_changed = true end
  if is_changed then apply_strictest_claims(b) end
  if leased ~= '-1' then correct_leased(b, tonumber(leased)) end
end

local function is_past(us, span_us, now_us) return us < 0 or us + span_us <= now_us end

-- Free units of all windows. With ahead_us, a window whose units are all of this process also has those that become free
-- within that time: the process itself keeps to the window.
local function free_units(b, others_us, ahead_us)
  local free = math.huge
  for index, window in ipairs(b.windows) do
    local more = 0
    if ahead_us > 0 and is_past(others_us, window.span_us, b.now_us) then
      more = math.floor(window.limit * ahead_us / window.span_us)
    end
    free = math.min(free, window.limit - used_units(b, index) + more)
  end
  return free
end

-- Units that may be leased now, from when the least number of units may be used that are leased now, and whether no other
-- process uses or waits for units.
local function offer(b, claim, least, most, ahead_us)
  local now_us, free_us = b.now_us, free_at(b, least)
  if b.head < b.tail and b.head_due_us + TURN_TIMEOUT_US <= now_us then advance_turns(b) end
  local others, ahead = others_of(b)
  local is_alone = ahead_us > 0 and others == 0 and b.spacing_us == 0 and b.mine.pending == b.pending
    and not is_stricter_than(b, claim)
  local others_us = b.writer == me.name and b.others_us or b.written > 0 and b.last_us or -1
  if is_alone then
    local shortest_us = math.huge
    for index = 1, #b.windows do shortest_us = math.min(shortest_us, b.windows[index].span_us) end
    is_alone = is_past(others_us, shortest_us, now_us)
  end
  -- Most requests are small and alone: they need no search for the number of free units.
  if others == 0 and free_us <= now_us
    and (least == most or b.spacing_us == 0 and free_at(b, most) <= now_us) then return most, now_us, is_alone end
  local free
  if free_us > now_us then
    free = is_alone and free_units(b, others_us, ahead_us) or -1
    if free < least then
      if ahead > 0 or b.spacing_us > 0 and b.pending > 0 then return 0, nil, is_alone end
      for index = 1, #b.windows do
        if b.pending + least > b.windows[index].limit then return 0, nil, is_alone end
      end
      return 0, free_us, is_alone
    end
  else
    free = free_units(b, others_us, is_alone and ahead_us or 0)
  end
  if others == 0 then return math.min(b.spacing_us > 0 and least or free, most), now_us, is_alone end
  local mine = free - ahead
  if mine < least then
    if now_us - free_us >= TURN_US then return least, now_us, is_alone end
    return 0, nil, is_alone
  end
  return math.min(mine, turn_units(b, least, most, others)), now_us, is_alone
end

local function due_at(b, least)
  local free_us = free_at(b, least)
  local others, ahead = others_of(b)
  if others == 0 then return free_us end
  local expected_us = ahead == 0 and free_us or expected_at(b, ahead + least)
  return expected_us > b.now_us and expected_us or math.max(b.now_us, free_us + TURN_US)
end

-- Leases the same number of units from every budget, or none. Returns the units, after which time they may be used, how
-- long to wait for the next ones, for which claim, and whether no other process uses or waits for units.
local function lease(claims, texts, least, most, ahead_us)
  local units, offers, delay_us, wait_us, binding, alone = most, {}, 0, 1, 1, 1
  for index = 1, #claims do
    local b = claims[index]
    local free, usable_us, is_alone = offer(b, texts[index], least, most, ahead_us)
    if not is_alone then alone = 0 end
    offers[index] = free
    if free < units then units = free end
    delay_us = math.max(delay_us, usable_us and usable_us - b.now_us or math.huge)
  end
  local free_now = units
  if free_now == 0 and delay_us <= ahead_us then units = least else delay_us = 0 end
  if units > 0 then
    for index = 1, #claims do
      local b = claims[index]
      b.mine.pending = b.mine.pending + units
      b.pending = b.pending + units
      leave_turn(b, b.mine)
    end
  end
  for index = 1, #claims do
    local b = claims[index]
    b.is_requested = true
    if units < most and offers[index] == free_now then
      local due_us = due_at(b, least)
      if due_us - b.now_us > wait_us then wait_us, binding = due_us - b.now_us, index end
      if due_us < b.now_us then due_us = b.now_us end
      -- A process that has got units while no other one waits needs no turn: the next one that comes is first.
      local is_waiting = units == 0 or others_of(b) > 0
      if is_waiting and (not b.wait or b.wait.due_us <= due_us) then b.wait = { due_us = due_us, least = least, most = most } end
    end
  end
  return units, delay_us, wait_us, binding, alone
end

local at = 9
for _ = 1, tonumber(ARGV[6]) do
  local b = budget_of(ARGV[at])
  local mine = b.mine
  -- A call of an older epoch was delayed, and its sender has corrected the count since: ignore it.
  if mine and mine.epoch <= me.epoch then
    if ARGV[at + 1] ~= '-1' then correct_leased(b, tonumber(ARGV[at + 1])) end
    local written = math.min(tonumber(ARGV[at + 2]), mine.pending)
    if written > 0 then write_reserved(b, me.name, written, b.now_us) end
    local returned = math.min(tonumber(ARGV[at + 3]), mine.pending - written)
    b.pending = b.pending - returned
    mine.pending = mine.pending - written - returned
    renew(b, mine)
  end
  at = at + 4
end

for _ = 1, tonumber(ARGV[7]) do
  local b, claim = budget_of(ARGV[at]), ARGV[at + 2]
  if not (b.mine and b.mine.epoch > me.epoch) then
    local ago_us = tonumber(ARGV[at + 5])
    local is_new = ago_us >= 0 and b.created_us > b.now_us - ago_us
    join(b, claim, ARGV[at + 1])
    local sent, missing, known = tonumber(ARGV[at + 3]), 0, ARGV[at + 4]:gmatch('[^,]+')
    if sent > 0 then write_by(b, me.name, sent, b.now_us - ARGV[at + 6]) end
    if is_new then
      each_use(b, claim, function(used) missing = math.max(missing, tonumber(known() or 0) - used) end)
    end
    if missing > 0 then write_by(b, '', missing, b.now_us) end
  end
  at = at + 7
end

local reply = { me.clock_us, 0, 0 }
while ARGV[at] do
  local least, most, callers = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local wants_use, ahead_us = ARGV[at + 4] == '1', tonumber(ARGV[at + 5])
  local claims, texts, is_lost, lost_claim, first = {}, {}, false, nil, at + 6
  at = first + 4 * ARGV[at]
  for position = first, at - 1, 4 do
    local b = budget_of(ARGV[position])
    claims[#claims + 1] = b
    texts[#claims] = ARGV[position + 2]
    is_lost = is_lost or b.mine and b.mine.epoch > me.epoch
    local ago_us = tonumber(ARGV[position + 3])
    if not lost_claim and ago_us >= 0 and b.created_us > b.now_us - ago_us then lost_claim = #claims end
  end
  local granted, wait_us, binding, stricter = 0, 1, 1, 0
  local reply_at = #reply + 1
  if lost_claim then
    reply[reply_at], reply[reply_at + 1] = -1, lost_claim
  else
  reply[reply_at] = 0
  if not is_lost then
    for index = 1, #claims do
      join(claims[index], texts[index], ARGV[first + 4 * index - 3])
      if is_stricter_than(claims[index], texts[index]) then stricter = 1 end
    end
    -- Equal requests at the same instant: after the first refusal all others are refused too.
    while granted < callers do
      local units, delay_us, alone
      units, delay_us, wait_us, binding, alone = lease(claims, texts, least, most, ahead_us)
      if units == 0 then break end
      granted = granted + 1
      local n = #reply
      reply[n + 1], reply[n + 2], reply[n + 3] = units, math.ceil(delay_us), alone
      if units < most then reply[n + 4] = math.ceil(wait_us) end
    end
  end
  reply[reply_at] = granted
  if granted < callers then
    local n = #reply
    reply[n + 1], reply[n + 2] = math.ceil(wait_us), binding
  end
  reply[#reply + 1] = stricter
  if wants_use then
    for index = 1, #claims do
      each_use(claims[index], texts[index], function(used) reply[#reply + 1] = used end)
    end
  end
  end
end

for _, b in pairs(budgets) do
  if b.is_requested then
    local mine, wait = b.mine, b.wait
    if not wait then
      leave_turn(b, mine)
    else
      local due_us = math.min(wait.due_us, b.now_us + MAX_TURN_US)
      if mine.turn == 0 then
        local others = others_of(b)
        mine.turn, mine.start = b.tail, b.turns_end
        b.turns[b.tail] = me.name
        put_field(b, 't:' .. b.tail, me.name)
        b.tail, b.waiting = b.tail + 1, b.waiting + 1
        b.turns_end = b.turns_end + turn_units(b, wait.least, wait.most, others)
      end
      mine.due_us = due_us
      if mine.turn == b.head then b.head_start, b.head_due_us = mine.start, due_us end
      b.alive_us = math.max(b.alive_us, due_us + TURN_TIMEOUT_US)
    end
  end
  save(b)
end
if ARGV[8] ~= '0' then reply[3] = count_processes(KEYS[tonumber(ARGV[8])]) end
return reply
`;

export const SCRIPT_SHA = createHash("sha1").update(SCRIPT).digest("hex");
