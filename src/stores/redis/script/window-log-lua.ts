/** `core/limits/window-log.ts` in Lua. */
export const WINDOW_LOG = `
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

-- Writes units of a process; '' stands for any process.
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

-- As free_at, if other units are written first, and all as early as the windows permit.
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
`;
