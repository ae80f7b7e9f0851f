/** `stores/exchange.ts` in Lua: settles, reports, leases and saves all budgets of the call. */
export const EXCHANGE = `
-- Leases the same number of units from every budget, or none. Returns: the units; the delay until they may be used; the
-- wait for the next units; the index of the claim that causes this wait; 1 if no other process uses or waits for units.
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
      -- A process that got units while no other process waits needs no turn: the next one that asks is served first.
      local is_waiting = units == 0 or others_of(b) > 0
      if is_waiting and (not b.wait or b.wait.due_us <= due_us) then b.wait = { due_us = due_us, least = least, most = most } end
    end
  end
  return units, delay_us, wait_us, binding, alone
end

local at = 10
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
    local sent, missing, known = tonumber(ARGV[at + 3]), 0, ARGV[at + (is_new and 4 or 7)]:gmatch('[^,]+')
    if sent > 0 then write_by(b, me.name, sent, b.now_us - ARGV[at + 6]) end
    each_use(b, claim, function(used) missing = math.max(missing, tonumber(known() or 0) - used) end)
    if missing > 0 then write_by(b, '', missing, b.now_us) end
  end
  at = at + 8
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
    if not wait or wait.least > smallest_limit(b) then
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
