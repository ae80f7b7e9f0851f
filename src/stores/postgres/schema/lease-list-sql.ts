import { CLEANED_AT_ONCE, TURN_TIMEOUT_US } from "./turn-queue-sql.ts";

/** A process gets a new entry only when the end of its lease has moved by at least 1/32 of the length of the lease. */
const ENTRY_PARTS = 32;

/** `core/limits/lease-list.ts` in PL/pgSQL, and the part of `SharedBudget.join` that handles leases that have ended. */
export const LEASE_LIST_FUNCTIONS = `
CREATE OR REPLACE FUNCTION append_lease(b working_budget, name text, at_us float8) RETURNS working_budget LANGUAGE plpgsql AS $f$
BEGIN
  INSERT INTO budget_leases (budget, number, check_us, process) VALUES (b.key, b.lease_tail, at_us, name);
  IF name = b.process THEN
    b.entry := b.lease_tail;
    b.entry_us := at_us;
  ELSE
    UPDATE budget_members AS m SET entry = b.lease_tail, entry_us = at_us WHERE m.budget = b.key AND m.process = name;
  END IF;
  IF b.lease_head = b.lease_tail THEN b.lease_head_us := at_us; END IF;
  b.lease_tail := b.lease_tail + 1;
  RETURN b;
END $f$;

-- Extends the lease of the calling process.
CREATE OR REPLACE FUNCTION renew(b working_budget) RETURNS working_budget LANGUAGE plpgsql AS $f$
BEGIN
  b.lease_us := b.now_us + b.term_us;
  b.alive_us := greatest(b.alive_us, b.lease_us);
  b.is_changed := true;
  IF b.entry = 0 OR b.lease_us - b.entry_us >= b.term_us / ${ENTRY_PARTS} THEN
    b := append_lease(b, b.process, b.lease_us);
  END IF;
  RETURN b;
END $f$;

-- Ends the leases that were not renewed in time.
CREATE OR REPLACE FUNCTION expire_leases(b working_budget) RETURNS working_budget LANGUAGE plpgsql AS $f$
DECLARE
  name text;
  other budget_members;
  left_us float8;
BEGIN
  FOR step IN 1..${CLEANED_AT_ONCE} LOOP
    EXIT WHEN b.lease_head >= b.lease_tail OR b.lease_head_us > b.now_us;
    SELECT l.process INTO name FROM budget_leases AS l WHERE l.budget = b.key AND l.number = b.lease_head;
    IF name = b.process THEN
      IF b.entry = b.lease_head THEN b := append_lease(b, name, b.now_us + b.term_us); END IF;
    ELSE
      SELECT m.* INTO other FROM budget_members AS m
        WHERE m.budget = b.key AND m.process = name AND m.entry = b.lease_head;
      IF FOUND THEN
        left_us := other.lease_us - b.now_us;
        -- The lease was renewed shortly after its entry was appended, so it has no newer one. It is checked when it ends.
        EXIT WHEN left_us > 0 AND left_us <= b.term_us / ${ENTRY_PARTS};
        b := check_lease(b, other);
      END IF;
    END IF;
    DELETE FROM budget_leases AS l WHERE l.budget = b.key AND l.number = b.lease_head;
    b.lease_head := b.lease_head + 1;
    b.lease_head_us := -1;
    IF b.lease_head < b.lease_tail THEN
      SELECT l.check_us INTO b.lease_head_us FROM budget_leases AS l WHERE l.budget = b.key AND l.number = b.lease_head;
      b.lease_head_us := coalesce(b.lease_head_us, b.now_us);
    END IF;
  END LOOP;
  RETURN b;
END $f$;

-- After its lease has ended, a process uses none of its leased units, so they count as written at the end of the lease.
CREATE OR REPLACE FUNCTION count_pending(b working_budget, other budget_members, end_us float8) RETURNS working_budget LANGUAGE plpgsql AS $f$
BEGIN
  IF other.leased = 0 THEN RETURN b; END IF;
  UPDATE budget_members AS m SET leased = 0 WHERE m.budget = b.key AND m.process = other.process;
  RETURN write_by(b, other.process, other.leased, greatest(b.last_us, end_us), other.leased);
END $f$;

CREATE OR REPLACE FUNCTION remove_member(b working_budget, other budget_members) RETURNS working_budget LANGUAGE plpgsql AS $f$
BEGIN
  DELETE FROM budget_members AS m WHERE m.budget = b.key AND m.process = other.process;
  IF other.turn > 0 THEN
    b := end_turn(b, other.turn);
    IF other.turn = b.head THEN b := advance_turns(b); END IF;
  END IF;
  RETURN count_claim(b, other.claim, -1);
END $f$;

-- Ends the leases of processes that have ended.
CREATE OR REPLACE FUNCTION end_leases(b working_budget, dead text[]) RETURNS working_budget LANGUAGE plpgsql AS $f$
DECLARE
  name text;
  other budget_members;
BEGIN
  FOREACH name IN ARRAY dead LOOP
    SELECT m.* INTO other FROM budget_members AS m WHERE m.budget = b.key AND m.process = name;
    IF FOUND AND name <> b.process THEN b := remove_member(count_pending(b, other, b.now_us), other); END IF;
  END LOOP;
  RETURN b;
END $f$;

-- Keeps another process if its lease was renewed or its turn has not timed out yet; otherwise removes it.
CREATE OR REPLACE FUNCTION check_lease(b working_budget, other budget_members) RETURNS working_budget LANGUAGE plpgsql AS $f$
BEGIN
  IF other.lease_us <= b.now_us THEN
    b := count_pending(b, other, other.lease_us);
    IF other.turn = 0 OR other.due_us + ${TURN_TIMEOUT_US} <= b.now_us THEN RETURN remove_member(b, other); END IF;
  END IF;
  RETURN append_lease(b, other.process, b.now_us + b.term_us);
END $f$;
`;
