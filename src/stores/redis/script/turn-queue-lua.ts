/** `core/limits/turn-queue.ts` in Lua. */
export const TURN_QUEUE = `
local TURN_TIMEOUT_US, TURNS_PER_WINDOW = 1000000, 4

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
  -- The queue is empty. This also corrects the count if the entry of a process was damaged.
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
  local others, turn, start = b.waiting, b.mine.turn, b.mine.start
  if turn > 0 then others = others - 1 else turn, start = b.tail, b.turns_end end
  if others == 0 then return 0, 0 end
  -- Turns behind the first turn may have ended, and it is not known which: all count as turns before this process.
  local units, turns, over = math.max(0, start - b.head_start), turn - b.head, b.tail - b.head - b.waiting
  if over <= 0 or turns <= 0 then return others, units end
  return others, math.ceil(units * math.max(0, turns - over) / turns)
end

local function smallest_limit(b)
  local limit = math.huge
  for index = 1, #b.windows do limit = math.min(limit, b.windows[index].limit) end
  return limit
end

-- The units of one turn.
local function turn_units(b, least, most, others)
  if b.spacing_us > 0 then return least end
  return math.max(least, math.min(most, math.floor(smallest_limit(b) / (TURNS_PER_WINDOW * (others + 1)))))
end
`;
