/** `core/limits/lease-list.ts` in Lua. */
export const LEASE_LIST = `
local ENTRY_PARTS = 32

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

-- After its lease has ended, a process uses none of its leased units, so they count as written at the end of the lease.
local function count_pending(b, m, end_us)
  if m.pending > 0 then write_reserved(b, m.name, m.pending, math.max(b.last_us, end_us)) end
  m.pending = 0
end

-- True if the set of claims has changed.
local function remove_member(b, m)
  leave_turn(b, m)
  b.members[m.name] = false
  b.gone[#b.gone + 1] = 'm:' .. m.name
  return count_claim(b, m.claim, -1)
end

-- Ends the leases that were not renewed in time. True if the set of claims has changed.
local function expire_leases(b)
  local is_changed = false
  for _ = 1, CLEANED do
    if b.lease_head >= b.lease_tail or b.lease_head_us > b.now_us then break end
    local entry = lease_of(b, b.lease_head)
    local m = entry and member_of(b, entry.name)
    if m and m.entry == b.lease_head then
      local left_us = m.lease_us - b.now_us
      -- The lease was renewed so soon after this entry was appended that it got no newer entry. It ends soon, so this
      -- entry stays first until then.
      if left_us > 0 and left_us <= me.lease_us / ENTRY_PARTS then break end
      local is_kept = left_us > 0
      if not is_kept then
        count_pending(b, m, m.lease_us)
        is_kept = m.turn > 0 and m.due_us + TURN_TIMEOUT_US > b.now_us
      end
      if is_kept then
        append_lease(b, m, b.now_us + me.lease_us)
      elseif remove_member(b, m) then
        is_changed = true
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
`;
