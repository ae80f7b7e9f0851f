/** The limits that processes claim: `core/limits/budget-claim.ts` in Lua. */
export const CLAIMS = `
-- A claim is text: 'spacing_us;limit,length_us,span_us;limit,length_us,span_us'.
local CLAIMED_WINDOW = ';([^,;]+),([^,;]+),([^,;]+)'

-- Applies the strictest claim for each window. Runs only when the set of different claims has changed.
local function apply_strictest_claims(b)
  local strictest, by_length = {}, {}
  b.spacing_us = 0
  for _, claim in ipairs(b.claims) do
    b.spacing_us = math.max(b.spacing_us, tonumber(claim.text:match('^[^;]*')))
    for limit, length_us, span_us in claim.text:gmatch(CLAIMED_WINDOW) do
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
  -- To bound the memory, a window of more than 200 units keeps the stamp of every n-th unit only; n is its grain.
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
  for limit, length_us, span_us in claim:gmatch(CLAIMED_WINDOW) do
    own[tonumber(length_us)] = { limit = tonumber(limit), span_us = tonumber(span_us) }
  end
  for _, window in ipairs(b.windows) do
    local mine = own[window.length_us]
    if not mine or window.limit < mine.limit or window.span_us > mine.span_us then return true end
  end
  return false
end

-- Adds or removes a process with this claim. Returns whether the set of different claims has changed.
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
`;
