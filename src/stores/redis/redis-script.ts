/**
 * The shared budget as a Lua script, which settles and leases on the server in one round trip (law S3).
 *
 * It must behave exactly as `core/limits/shared-budget.ts` and `core/limits/window-log.ts`, and uses their order and
 * their names; `test/stores/redis-script.test.ts` runs random traces through both. A change of one needs the same
 * change of the other.
 *
 * A budget is one hash. Field `s` holds the counters, the windows and the members. Each stamp has its own field,
 * `<window>:<mark>`, so that a decision reads one stamp per window however large the window is. Numbers are packed as
 * doubles, which hold microseconds exactly and are ten times as fast as printing and parsing.
 *
 * Each call of the script creates every function again. So there are few functions, helpers that are rarely needed are
 * part of the function that needs them, and shared values are in `me` instead of a dozen captured locals.
 *
 *   KEYS   the budgets; or only the list of processes
 *   ARGV   process, lease in us, epoch, latest time (us of the server's clock, 0 for any), current time (tests only),
 *          the number of settlements, or -1 to renew the entry in the list of processes, the number of reports, then
 *          for each settlement  budget, leased units or -1, written, returned
 *          for each report      budget, leased units or -1, claim, units sent without a lease, units known in each window,
 *                               age of that knowledge in us or -1
 *          for each request     number of claims, least, most, number of callers, 1 if the use is wanted,
 *                               then for each claim  budget, leased units or -1, claim, age of the knowledge in us or -1
 *   reply  the server's time, 0 (or -1 for a call that came too late and had no effect), then
 *          for each request     number of grants, the units of each, then, if some caller got none, the wait in us and
 *                               the position of the binding claim; then 1 if another process claims stricter limits,
 *                               then, if it is wanted, the units in use in each window of each claim;
 *                               or -1 and the position of a claim whose budget is younger than the knowledge of it
 */
import { createHash } from "node:crypto";

export const SCRIPT = `
local WAITING_TIMEOUT_US, TURN_US = 2000000, 20000
local me = { name = ARGV[1], lease_us = tonumber(ARGV[2]), epoch = tonumber(ARGV[3]), clock_us = tonumber(ARGV[5]) }
if not me.clock_us then
  local time = redis.call('TIME')
  me.clock_us = time[1] * 1000000 + time[2]
  -- The caller has given up by now: it would neither write nor return the units.
  if ARGV[4] ~= '0' and me.clock_us > tonumber(ARGV[4]) then return { me.clock_us, -1 } end
end

if ARGV[6] == '-1' then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', me.clock_us)
  if me.lease_us > 0 then
    redis.call('ZADD', KEYS[1], me.clock_us + me.lease_us, me.name)
    redis.call('PEXPIRE', KEYS[1], math.ceil(me.lease_us / 1000) * 2)
  else
    redis.call('ZREM', KEYS[1], me.name)
  end
  return { me.clock_us, 0, redis.call('ZCARD', KEYS[1]) }
end

local budgets = {}

local function parse(b, packed)
  local unpack_struct, at = struct.unpack, 1
  b.written, b.pending, b.last_us, b.rings, b.shift_us, b.seen_us, b.expires_us, b.spacing_us, b.created_us, b.count, at =
    unpack_struct('<dddddddddd', packed)
  b.has_rings = b.rings == 1
  for index = 1, b.count do
    local limit, span_us, length_us, grain, capacity
    limit, span_us, length_us, grain, capacity, at = unpack_struct('<ddddd', packed, at)
    b.windows[index] = { limit = limit, span_us = span_us, length_us = length_us, grain = grain, capacity = capacity }
  end
  while at <= #packed do
    local pending, lease_us, epoch, waiting, next_request_us, usage, overruled, name, claim
    pending, lease_us, epoch, waiting, next_request_us, usage, overruled, name, claim, at =
      unpack_struct('<dddddddss', packed, at)
    local member = { name = name, claim = claim, pending = pending, lease_us = lease_us, epoch = epoch,
      is_waiting = waiting == 1, next_request_us = next_request_us, usage = usage, is_overruled = overruled == 1 }
    b.members[#b.members + 1] = member
    if name == me.name then b.mine = member end
  end
end

local function budget_of(position)
  local b = budgets[position]
  if b then return b end
  local key = KEYS[tonumber(position)]
  local packed = redis.pcall('HGET', key, 's')
  b = { key = key, members = {}, windows = {}, has_rings = false, now_us = 0, written = 0, pending = 0, last_us = 0,
    rings = 0, shift_us = 0, seen_us = 0, expires_us = 0, spacing_us = 0, created_us = me.clock_us, count = 0 }
  local is_wrong_type = type(packed) == 'table' and packed.err and packed.err:find('WRONGTYPE', 1, true)
  if type(packed) == 'table' and not is_wrong_type then error(packed) end
  if is_wrong_type or packed and not pcall(parse, b, packed) then
    -- One key that cannot be read must not take the store away for all: it is set aside, and counts as lost.
    redis.call('RENAME', key, key .. ':damaged')
    redis.call('PEXPIRE', key .. ':damaged', 86400000)
    b = { key = key, members = {}, windows = {}, has_rings = false, now_us = 0, written = 0, pending = 0, last_us = 0,
      rings = 0, shift_us = 0, seen_us = 0, expires_us = 0, spacing_us = 0, created_us = me.clock_us, count = 0 }
  end
  -- If the clock was set back, or another machine took over, time stands still until it has caught up.
  local now_us = me.clock_us + b.shift_us
  if now_us < b.seen_us then
    b.shift_us = b.shift_us + b.seen_us - now_us
    now_us = b.seen_us
  end
  b.now_us, b.stamps, b.puts = now_us, {}, {}
  budgets[position] = b
  return b
end

local function save(b)
  local packs, windows, pack_struct = {}, '', struct.pack
  local alive_us, longest_us = me.lease_us, b.spacing_us
  for i = 1, #b.members do
    local m = b.members[i]
    if m.lease_us - b.now_us > alive_us then alive_us = m.lease_us - b.now_us end
    packs[i] = pack_struct('<dddddddss', m.pending, m.lease_us, m.epoch, m.is_waiting and 1 or 0,
      m.next_request_us, m.usage, m.is_overruled and 1 or 0, m.name, m.claim)
  end
  if #packs == 0 and b.written == 0 then return end
  for i = 1, #b.windows do
    local w = b.windows[i]
    if w.span_us > longest_us then longest_us = w.span_us end
    windows = windows .. pack_struct('<ddddd', w.limit, w.span_us, w.length_us, w.grain, w.capacity)
  end
  -- By then all leases have ended and every window has passed, so the key can delay no request.
  local needed_us = alive_us + longest_us + 1000000
  local is_short = b.expires_us < me.clock_us + needed_us
  if is_short then b.expires_us = me.clock_us + 2 * needed_us end
  local packed = pack_struct('<dddddddddd', b.written, b.pending, b.last_us, b.has_rings and 1 or 0, b.shift_us,
    b.now_us, b.expires_us, b.spacing_us, b.created_us, #b.windows) .. windows .. table.concat(packs)
  local puts, from = b.puts, 1
  -- In parts, because unpack puts all its values on Lua's small stack.
  while #puts - from > 200 do
    redis.call('HSET', b.key, unpack(puts, from, from + 199))
    from = from + 200
  end
  redis.call('HSET', b.key, 's', packed, unpack(puts, from))
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
    stamp_us = packed and struct.unpack('<d', packed) or b.last_us
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

local function write_reserved(b, units, at_us)
  b.pending = b.pending - units
  write(b, units, at_us)
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

-- The shared budget.

-- How many other processes wait, how many of them have a lower usage than this one, and the lowest usage among them.
local function waiting_others(b)
  local count, ahead, least_usage = 0, 0, math.huge
  for i = 1, #b.members do
    local m = b.members[i]
    if m.is_waiting and m ~= b.mine and m.next_request_us >= 0
      and b.now_us - m.next_request_us < WAITING_TIMEOUT_US then
      count = count + 1
      if m.usage < b.mine.usage then ahead = ahead + 1 end
      if m.usage < least_usage then least_usage = m.usage end
    end
  end
  return count, ahead, least_usage
end

-- Applies the strictest claim for each window. Runs only when a process joins, leaves or changes its claim.
local function apply_strictest_claims(b)
  local claims, strictest, by_length = {}, {}, {}
  b.spacing_us = 0
  for position, member in ipairs(b.members) do
    local claim = { spacing_us = tonumber(member.claim:match('^[^;]*')), windows = {} }
    claims[position] = claim
    b.spacing_us = math.max(b.spacing_us, claim.spacing_us)
    for limit, length_us, span_us in member.claim:gmatch(';([^,;]+),([^,;]+),([^,;]+)') do
      limit, length_us, span_us = tonumber(limit), tonumber(length_us), tonumber(span_us)
      claim.windows[length_us] = { limit = limit, span_us = span_us }
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
  if not is_same then
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
  for position, member in ipairs(b.members) do
    local own = claims[position]
    member.is_overruled = b.spacing_us > own.spacing_us
    for _, window in ipairs(b.windows) do
      local mine = own.windows[window.length_us]
      if not mine or window.limit < mine.limit or window.span_us > mine.span_us then member.is_overruled = true end
    end
  end
end

-- It is unknown what a lost call granted or settled. The process reports its leased units; the rest counts as written.
local function correct_leased(b, leased)
  local lost = b.mine.pending - leased
  if lost > 0 then write_reserved(b, lost, b.now_us) else b.pending = b.pending - lost end
  b.mine.pending, b.mine.epoch = leased, me.epoch
end

local function join(b, claim, leased)
  local mine, members, expired = b.mine, b.members, 0
  local is_changed = not mine or mine.claim ~= claim
  if not mine then
    mine = { name = me.name, claim = claim, pending = 0, lease_us = 0, epoch = me.epoch, is_waiting = false,
      next_request_us = -1, usage = 0, is_overruled = false }
    members[#members + 1] = mine
    b.mine = mine
  end
  mine.claim, mine.lease_us = claim, b.now_us + me.lease_us
  for i = 1, #members do
    local other = members[i]
    if other.lease_us > b.now_us then
      members[i - expired] = other
    else
      expired = expired + 1
      -- A process sends no leased unit after its lease, so the end of the lease is the latest time of the write.
      if other.pending > 0 then write_reserved(b, other.pending, math.max(b.last_us, other.lease_us)) end
    end
  end
  for _ = 1, expired do members[#members] = nil end
  if is_changed or expired > 0 then apply_strictest_claims(b) end
  if leased ~= '-1' then correct_leased(b, tonumber(leased)) end
end

local function available_units(b, least, most)
  local free_us, now_us = free_at(b, least), b.now_us
  if free_us > now_us then return 0 end
  local others, ahead = waiting_others(b)
  -- Most requests are small and alone: they need no search for the number of free units.
  if others == 0 and (least == most or b.spacing_us == 0 and free_at(b, most) <= now_us) then return most end
  local free = math.huge
  for index, window in ipairs(b.windows) do free = math.min(free, window.limit - used_units(b, index)) end
  local at_once = math.min(b.spacing_us > 0 and least or free, most)
  if others == 0 then return at_once end
  if free <= ahead and now_us - free_us < TURN_US then return 0 end
  return math.min(at_once, math.max(least, math.ceil(free / (others + 1))))
end

-- Leases the same number of units from every budget, or none; then also returns how long to wait, and for which claim.
local function lease(claims, least, most)
  local units, capacities, wait_us, binding = most, {}, 1, 1
  for index = 1, #claims do
    local free = available_units(claims[index], least, most)
    capacities[index] = free
    if free < units then units = free end
  end
  for index = 1, #claims do
    local b = claims[index]
    b.is_requested = true
    if units < most and capacities[index] == units then
      local free_us = free_at(b, least)
      if free_us <= b.now_us and waiting_others(b) > 0 then free_us = math.max(b.now_us, free_us + TURN_US) end
      if free_us - b.now_us > wait_us then wait_us, binding = free_us - b.now_us, index end
      local next_request_us = math.min(free_us, b.now_us + me.lease_us)
      b.next_request_us = math.max(next_request_us, b.next_request_us or next_request_us)
    end
    if units > 0 then
      b.mine.pending = b.mine.pending + units
      b.mine.usage = b.mine.usage + units
      b.pending = b.pending + units
    end
  end
  return units, wait_us, binding
end

local at = 8
for _ = 1, tonumber(ARGV[6]) do
  local b = budget_of(ARGV[at])
  local mine = b.mine
  -- A call of an older epoch was delayed, and its sender has corrected the count since: ignore it.
  if mine and mine.epoch <= me.epoch then
    mine.lease_us = b.now_us + me.lease_us
    if ARGV[at + 1] ~= '-1' then correct_leased(b, tonumber(ARGV[at + 1])) end
    local written = math.min(tonumber(ARGV[at + 2]), mine.pending)
    if written > 0 then write_reserved(b, written, b.now_us) end
    local returned = math.min(tonumber(ARGV[at + 3]), mine.pending - written)
    b.pending = b.pending - returned
    mine.pending = mine.pending - written - returned
    mine.usage = mine.usage - returned
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
    if sent > 0 then write(b, sent, b.now_us) end
    if is_new then
      each_use(b, claim, function(used) missing = math.max(missing, tonumber(known() or 0) - used) end)
    end
    if missing > 0 then write(b, missing, b.now_us) end
  end
  at = at + 6
end

local reply = { me.clock_us, 0 }
while ARGV[at] do
  local least, most, callers = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local wants_use = ARGV[at + 4] == '1'
  local claims, is_lost, lost_claim, first = {}, false, nil, at + 5
  at = first + 4 * ARGV[at]
  for position = first, at - 1, 4 do
    local b = budget_of(ARGV[position])
    claims[#claims + 1] = b
    is_lost = is_lost or b.mine and b.mine.epoch > me.epoch
    local ago_us = tonumber(ARGV[position + 3])
    if not lost_claim and ago_us >= 0 and b.created_us > b.now_us - ago_us then lost_claim = #claims end
  end
  local granted, wait_us, binding, stricter = 0, 1, 1, 0
  local reply_at = #reply + 1
  if lost_claim then
    reply[reply_at], reply[reply_at + 1] = -1, lost_claim
  else
  if not is_lost then
    for index = 1, #claims do
      join(claims[index], ARGV[first + 4 * index - 2], ARGV[first + 4 * index - 3])
      if claims[index].mine.is_overruled then stricter = 1 end
    end
    -- Equal requests at the same instant: after the first refusal all others are refused too.
    while granted < callers do
      local units
      units, wait_us, binding = lease(claims, least, most)
      if units == 0 then break end
      granted = granted + 1
      reply[reply_at + granted] = units
    end
  end
  reply[reply_at] = granted
  if granted < callers then
    reply[reply_at + granted + 1], reply[reply_at + granted + 2] = math.ceil(wait_us), binding
  end
  reply[#reply + 1] = stricter
  if wants_use then
    for index = 1, #claims do
      each_use(claims[index], ARGV[first + 4 * index - 2], function(used) reply[#reply + 1] = used end)
    end
  end
  end
end

for _, b in pairs(budgets) do
  if b.is_requested then
    local mine, next_request_us = b.mine, b.next_request_us
    -- A process that starts waiting takes over the lowest usage of the other waiting processes, so that past usage
    -- gives no process priority.
    if next_request_us and not (mine.next_request_us >= 0 and b.now_us - mine.next_request_us < WAITING_TIMEOUT_US) then
      local others, _, least_usage = waiting_others(b)
      if others > 0 then mine.usage = least_usage end
    end
    mine.is_waiting = next_request_us ~= nil
    if next_request_us then mine.next_request_us = next_request_us end
  end
  save(b)
end
return reply
`;

export const SCRIPT_SHA = createHash("sha1").update(SCRIPT).digest("hex");
