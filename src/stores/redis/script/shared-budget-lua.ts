/** `core/limits/shared-budget.ts` in Lua. */
export const SHARED_BUDGET = `
local TURN_US, MAX_TURN_US = 20000, 120000000

-- After a lost reply, the process reports its leased units. If the budget has more for it, the rest counts as written; if
-- fewer, they are added.
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
  -- Processes that have ended.
  for name in ARGV[9]:gmatch('[^,]+') do
    local m = name ~= me.name and member_of(b, name)
    if m then
      count_pending(b, m, b.now_us)
      if remove_member(b, m) then is_changed = true end
    end
  end
  if is_changed then apply_strictest_claims(b) end
  if leased ~= '-1' then correct_leased(b, tonumber(leased)) end
end

local function is_past(us, span_us, now_us) return us < 0 or us + span_us <= now_us end

-- Free units over all windows. With ahead_us, a window that counts no units of others has more: those its limit allows
-- in that time. The process applies it by its own clock.
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

-- Until when free units are reserved for the turns before: a moment after all of them could have theirs; several units
-- also until the first process is due.
local function reserved_until(b, least, ahead)
  local free_us = free_at(b, math.max(least, math.min(ahead, smallest_limit(b))))
  return (ahead > 1 and math.max(free_us, b.head_due_us) or free_us) + TURN_US
end

-- Returns three values: the units that may be leased for use now; from when the least number of units may be used if they
-- are leased now, nil if that is unknown; whether no other process uses or waits for units.
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
  -- Most requests are for few units while no other process waits: they need no search for the number of free units.
  if others == 0 and free_us <= now_us
    and (least == most or b.spacing_us == 0 and free_at(b, most) <= now_us) then return most, now_us, is_alone end
  local is_free, free = free_us <= now_us, -1
  if is_free or is_alone then free = free_units(b, others_us, is_alone and ahead_us or 0) end
  if is_free or free >= least then
    is_free = true
    if others == 0 then return math.min(b.spacing_us > 0 and least or free, most), now_us, is_alone end
    if free - ahead >= least then return math.min(free - ahead, turn_units(b, least, most, others)), now_us, is_alone end
    if reserved_until(b, least, ahead) <= now_us then return least, now_us, is_alone end
  end
  -- If the units of this process and of all before it in the queue are known to be usable within ahead_us, it gets the
  -- first of them. Each of the others gets its units when it asks.
  local units = ahead + least
  if b.spacing_us > 0 and b.pending > 0 then return 0, nil, is_alone end
  for index = 1, #b.windows do
    if b.pending + units > b.windows[index].limit then return 0, nil, is_alone end
  end
  if ahead > 0 and expected_at(b, units) > now_us + ahead_us then return 0, nil, is_alone end
  if is_free then return least, now_us, is_alone end
  return 0, free_us, is_alone
end

local function due_at(b, least)
  local free_us = free_at(b, least)
  local others, ahead = others_of(b)
  if others == 0 then return free_us end
  local expected_us = ahead == 0 and free_us or expected_at(b, ahead + least)
  return expected_us > b.now_us and expected_us or math.max(b.now_us, reserved_until(b, least, ahead))
end
`;
