import { TURN_TIMEOUT_US } from "./turn-queue-sql.ts";

/** How long free units are reserved for the processes whose turn it is, when there are enough for them. */
const TURN_US = 20_000;
/** No turn is kept for longer. */
const MAX_TURN_US = 120_000_000;
const TURNS_PER_WINDOW = 4;
const MAX_STAMPS = 200;

/** `core/limits/shared-budget.ts` and `budget-claim.ts` in PL/pgSQL. A claim is the text of `claimText`. */
export const SHARED_BUDGET_FUNCTIONS = `
CREATE OR REPLACE FUNCTION count_claim(b working_budget, claim_text text, change float8) RETURNS working_budget LANGUAGE plpgsql AS $f$
DECLARE
  place integer := array_position(b.claims, claim_text);
BEGIN
  IF place IS NULL AND change > 0 THEN
    b.claims := b.claims || claim_text;
    b.claim_counts := b.claim_counts || change;
    b.are_claims_changed := true;
  ELSIF place IS NOT NULL THEN
    b.claim_counts[place] := b.claim_counts[place] + change;
    IF b.claim_counts[place] <= 0 THEN
      b.claims := b.claims[:place - 1] || b.claims[place + 1:];
      b.claim_counts := b.claim_counts[:place - 1] || b.claim_counts[place + 1:];
      b.are_claims_changed := true;
    END IF;
  END IF;
  RETURN b;
END $f$;

-- Applies the strictest claim for each window length.
CREATE OR REPLACE FUNCTION apply_strictest_claims(b working_budget) RETURNS working_budget LANGUAGE plpgsql AS $f$
DECLARE
  new_limits float8[] := '{}';
  new_spans_us float8[] := '{}';
  new_lengths_us float8[] := '{}';
  new_grains float8[] := '{}';
  new_capacities float8[] := '{}';
  claim_text text;
  part text;
  parts float8[];
  place integer;
  is_same boolean;
BEGIN
  b.spacing_us := 0;
  FOREACH claim_text IN ARRAY b.claims LOOP
    b.spacing_us := greatest(b.spacing_us, split_part(claim_text, ';', 1)::float8);
    FOREACH part IN ARRAY (string_to_array(claim_text, ';'))[2:] LOOP
      parts := string_to_array(part, ',')::float8[];
      place := array_position(new_lengths_us, parts[2]);
      IF place IS NULL THEN
        new_limits := new_limits || parts[1];
        new_lengths_us := new_lengths_us || parts[2];
        new_spans_us := new_spans_us || parts[3];
      ELSE
        new_limits[place] := least(new_limits[place], parts[1]);
        new_spans_us[place] := greatest(new_spans_us[place], parts[3]);
      END IF;
    END LOOP;
  END LOOP;
  is_same := cardinality(new_limits) = cardinality(b.limits);
  FOR i IN 1..cardinality(b.limits) LOOP
    place := array_position(new_lengths_us, b.lengths_us[i]);
    is_same := is_same AND place IS NOT NULL AND new_limits[place] = b.limits[i] AND new_spans_us[place] = b.spans_us[i];
  END LOOP;
  IF is_same THEN RETURN b; END IF;
  FOR i IN 1..cardinality(new_limits) LOOP
    new_grains[i] := ceil(new_limits[i] / ${MAX_STAMPS});
    new_capacities[i] := ceil(new_limits[i] / new_grains[i]) + 1;
  END LOOP;
  IF b.has_rings THEN PERFORM replace_stamps(b, new_grains, new_capacities); END IF;
  b.limits := new_limits;
  b.spans_us := new_spans_us;
  b.lengths_us := new_lengths_us;
  b.grains := new_grains;
  b.capacities := new_capacities;
  RETURN b;
END $f$;

-- Stores the stamps for other windows. No stamp is lost: each unit keeps the most exact one of all old windows.
CREATE OR REPLACE FUNCTION replace_stamps(b working_budget, new_grains float8[], new_capacities float8[])
RETURNS void LANGUAGE plpgsql AS $f$
DECLARE
  windows integer[] := '{}';
  slots bigint[] := '{}';
  stamps_us float8[] := '{}';
  newest bigint;
  mark bigint;
  oldest_us float8;
  old_us float8;
BEGIN
  FOR i IN 1..cardinality(new_grains) LOOP
    newest := floor(b.written / new_grains[i]);
    oldest_us := b.last_us;
    FOR mark IN SELECT generate_series(newest, greatest(1, newest - new_capacities[i]::bigint + 1), -1) LOOP
      FOR old IN 1..cardinality(b.limits) LOOP
        old_us := stamp_us(b, old, mark * new_grains[i]);
        IF old_us > '-Infinity' THEN oldest_us := least(oldest_us, old_us); END IF;
      END LOOP;
      windows := windows || i;
      slots := slots || mod(mark, new_capacities[i]::bigint);
      stamps_us := stamps_us || oldest_us;
    END LOOP;
  END LOOP;
  DELETE FROM budget_stamps AS s WHERE s.budget = b.key;
  INSERT INTO budget_stamps (budget, window_index, slot, stamp_us)
    SELECT b.key, each.* FROM unnest(windows, slots, stamps_us) AS each;
END $f$;

-- True if another process claims stricter limits.
CREATE OR REPLACE FUNCTION is_stricter(b working_budget, claim_text text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $f$
DECLARE
  part text;
  parts float8[];
  lengths_us float8[] := '{}';
  place integer;
BEGIN
  IF cardinality(b.claims) = 1 THEN RETURN false; END IF;
  IF b.spacing_us > split_part(claim_text, ';', 1)::float8 THEN RETURN true; END IF;
  FOREACH part IN ARRAY (string_to_array(claim_text, ';'))[2:] LOOP
    parts := string_to_array(part, ',')::float8[];
    place := array_position(b.lengths_us, parts[2]);
    IF b.limits[place] < parts[1] OR b.spans_us[place] > parts[3] THEN RETURN true; END IF;
    lengths_us := lengths_us || parts[2];
  END LOOP;
  RETURN NOT b.lengths_us <@ lengths_us;
END $f$;

-- The units in use in each window of a claim; 0 for a window that the budget does not have.
CREATE OR REPLACE FUNCTION use_of(b working_budget, claim_text text) RETURNS float8[] LANGUAGE plpgsql STABLE AS $f$
DECLARE
  part text;
  place integer;
  used float8[] := '{}';
BEGIN
  FOREACH part IN ARRAY (string_to_array(claim_text, ';'))[2:] LOOP
    place := array_position(b.lengths_us, split_part(part, ',', 2)::float8);
    used := used || CASE WHEN place IS NULL THEN 0 ELSE used_units(b, place) END;
  END LOOP;
  RETURN used;
END $f$;

-- Adds the calling process or updates its claim and lease, and removes processes whose lease has ended or that are dead.
CREATE OR REPLACE FUNCTION join_budget(b working_budget, claim_text text, dead text[]) RETURNS working_budget LANGUAGE plpgsql AS $f$
BEGIN
  IF b.created_us < 0 THEN b.created_us := b.now_us; END IF;
  IF NOT b.is_member THEN
    b.is_member := true;
    b := count_claim(b, claim_text, 1);
  ELSIF b.claim <> claim_text THEN
    b := count_claim(count_claim(b, b.claim, -1), claim_text, 1);
  END IF;
  b.claim := claim_text;
  b := end_leases(expire_leases(renew(b)), dead);
  IF b.are_claims_changed THEN
    b.are_claims_changed := false;
    b := apply_strictest_claims(b);
  END IF;
  RETURN b;
END $f$;

-- Settles leased units: written now, or returned. Units of a lease that has ended were counted already.
CREATE OR REPLACE FUNCTION settle(b working_budget, written_units float8, returned_units float8)
RETURNS working_budget LANGUAGE plpgsql AS $f$
DECLARE
  written float8 := least(written_units, b.leased);
  returned float8 := least(returned_units, b.leased - written);
BEGIN
  IF NOT b.is_member THEN RETURN b; END IF;
  IF written > 0 THEN b := write_by(b, b.process, written, b.now_us, written); END IF;
  b.pending := b.pending - returned;
  b.leased := b.leased - written - returned;
  RETURN renew(b);
END $f$;

-- Counts units that a process sent without a lease, and, if the store has lost the budget, units it knows were used.
CREATE OR REPLACE FUNCTION report_use(
  b working_budget, claim_text text, sent float8, sent_ago_us float8, known float8[], is_lost boolean, dead text[])
RETURNS working_budget LANGUAGE plpgsql AS $f$
DECLARE
  used float8[];
  missing float8 := 0;
BEGIN
  b := join_budget(b, claim_text, dead);
  IF sent > 0 THEN b := write_by(b, b.process, sent, b.now_us - sent_ago_us, 0); END IF;
  IF NOT is_lost THEN RETURN b; END IF;
  used := use_of(b, claim_text);
  FOR i IN 1..cardinality(known) LOOP
    missing := greatest(missing, known[i] - coalesce(used[i], 0));
  END LOOP;
  IF missing > 0 THEN b := write_by(b, '', missing, b.now_us, 0); END IF;
  RETURN b;
END $f$;

-- Free units over all windows. With ahead_us, a window that counts no units of others has more: those its limit allows
-- in that time. The process applies it by its own clock.
CREATE OR REPLACE FUNCTION free_units(b working_budget, others_us float8, ahead_us float8) RETURNS float8 LANGUAGE plpgsql STABLE AS $f$
DECLARE
  free float8 := 'Infinity';
  more float8;
BEGIN
  FOR i IN 1..cardinality(b.limits) LOOP
    more := 0;
    IF ahead_us > 0 AND (others_us IS NULL OR others_us + b.spans_us[i] <= b.now_us) THEN
      more := floor(b.limits[i] * ahead_us / b.spans_us[i]);
    END IF;
    free := least(free, b.limits[i] - used_units(b, i) + more);
  END LOOP;
  RETURN free;
END $f$;

CREATE OR REPLACE FUNCTION smallest_limit(b working_budget) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $f$
DECLARE
  lowest float8 := 'Infinity';
BEGIN
  FOR i IN 1..cardinality(b.limits) LOOP lowest := least(lowest, b.limits[i]); END LOOP;
  RETURN lowest;
END $f$;

-- The units of one turn.
CREATE OR REPLACE FUNCTION turn_units(b working_budget, least_units float8, most_units float8, others float8)
RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN
  IF b.spacing_us > 0 THEN RETURN least_units; END IF;
  RETURN greatest(least_units, least(most_units, floor(smallest_limit(b) / (${TURNS_PER_WINDOW} * (others + 1)))));
END $f$;

-- Until when free units are reserved for the turns before: a moment after all of them could have theirs; several units
-- also until the first process is due.
CREATE OR REPLACE FUNCTION reserved_until(b working_budget, least_units float8, ahead float8)
RETURNS float8 LANGUAGE plpgsql STABLE AS $f$
DECLARE
  frees_us float8 := free_us(b, greatest(least_units, least(ahead, smallest_limit(b))));
BEGIN
  RETURN CASE WHEN ahead > 1 THEN greatest(frees_us, b.head_due_us) ELSE frees_us END + ${TURN_US};
END $f$;

-- Sets offer_units to the units that the process may lease for use now. Sets offer_usable_us to the time from which it may use
-- the least number of units if they are leased now; NULL if that is unknown. Sets is_alone to true if no other process
-- uses or waits for units.
CREATE OR REPLACE FUNCTION offer(b working_budget, claim_text text, least_units float8, most_units float8, ahead_us float8)
RETURNS working_budget LANGUAGE plpgsql AS $f$
DECLARE
  frees_us float8;
  others float8;
  others_us float8 := CASE WHEN b.writer = b.process THEN b.others_us WHEN b.written > 0 THEN b.last_us END;
  shortest_us float8 := 'Infinity';
  free float8;
  is_free boolean;
BEGIN
  IF b.head < b.tail AND b.head_due_us + ${TURN_TIMEOUT_US} <= b.now_us THEN b := advance_turns(b); END IF;
  others := others_of(b);
  frees_us := free_us(b, least_units);
  b.is_alone := ahead_us > 0 AND others = 0 AND b.spacing_us = 0 AND b.leased = b.pending;
  IF b.is_alone AND others_us IS NOT NULL THEN
    FOR i IN 1..cardinality(b.spans_us) LOOP shortest_us := least(shortest_us, b.spans_us[i]); END LOOP;
    b.is_alone := others_us + shortest_us <= b.now_us;
  END IF;
  b.is_alone := b.is_alone AND NOT is_stricter(b, claim_text);
  b.offer_units := 0;
  b.offer_usable_us := b.now_us;
  -- Most requests are for few units while no other process waits: they need no search for the number of free units.
  IF others = 0 AND frees_us <= b.now_us
      AND (least_units = most_units OR (b.spacing_us = 0 AND free_us(b, most_units) <= b.now_us)) THEN
    b.offer_units := most_units;
    RETURN b;
  END IF;
  IF frees_us <= b.now_us OR b.is_alone THEN
    free := free_units(b, others_us, CASE WHEN b.is_alone THEN ahead_us ELSE 0 END);
  END IF;
  is_free := frees_us <= b.now_us OR (b.is_alone AND free >= least_units);
  IF is_free AND others = 0 THEN
    b.offer_units := least(CASE WHEN b.spacing_us > 0 THEN least_units ELSE free END, most_units);
  ELSIF is_free AND free - ahead_of(b) >= least_units THEN
    b.offer_units := least(free - ahead_of(b), turn_units(b, least_units, most_units, others));
  ELSIF is_free AND reserved_until(b, least_units, ahead_of(b)) <= b.now_us THEN
    b.offer_units := least_units;
  ELSIF NOT has_units_for_all(b, ahead_of(b), least_units, ahead_us) THEN
    b.offer_usable_us := NULL;
  ELSIF is_free THEN
    b.offer_units := least_units;
  ELSE
    b.offer_usable_us := frees_us;
  END IF;
  RETURN b;
END $f$;

-- Whether the units of this process and of all before it in the queue are known to be usable within ahead_us. Then it gets
-- the first of them. Each of the others gets its units when it asks.
CREATE OR REPLACE FUNCTION has_units_for_all(b working_budget, ahead float8, least_units float8, ahead_us float8)
RETURNS boolean LANGUAGE plpgsql STABLE AS $f$
DECLARE
  units float8 := ahead + least_units;
BEGIN
  -- The next units wait for written ones only: a leased unit may be written at any time.
  IF b.spacing_us > 0 AND b.pending > 0 THEN RETURN false; END IF;
  FOR i IN 1..cardinality(b.limits) LOOP
    IF b.pending + units > b.limits[i] THEN RETURN false; END IF;
  END LOOP;
  RETURN ahead = 0 OR expected_us(b, units) <= b.now_us + ahead_us;
END $f$;

-- When the calling process can expect the least number of units, if all before it take theirs on time.
CREATE OR REPLACE FUNCTION due_us(b working_budget, least_units float8) RETURNS float8 LANGUAGE plpgsql STABLE AS $f$
DECLARE
  frees_us float8 := free_us(b, least_units);
  ahead float8 := ahead_of(b);
  expected float8;
BEGIN
  IF others_of(b) = 0 THEN RETURN frees_us; END IF;
  expected := CASE WHEN ahead = 0 THEN frees_us ELSE expected_us(b, ahead + least_units) END;
  IF expected > b.now_us THEN RETURN expected; END IF;
  RETURN greatest(b.now_us, reserved_until(b, least_units, ahead));
END $f$;

-- Leases units to the calling process. Its turn is over.
CREATE OR REPLACE FUNCTION reserve(b working_budget, units float8) RETURNS working_budget LANGUAGE plpgsql AS $f$
BEGIN
  b.leased := b.leased + units;
  b.pending := b.pending + units;
  RETURN leave_turn(b);
END $f$;

-- After all requests of the exchange: a process that got too few units of a budget has a turn there, unless it needs more
-- than another process permits.
CREATE OR REPLACE FUNCTION set_waiting(b working_budget) RETURNS working_budget LANGUAGE plpgsql AS $f$
BEGIN
  IF b.wait_due_us IS NULL OR b.wait_least > smallest_limit(b) THEN RETURN leave_turn(b); END IF;
  RETURN join_turns(b, turn_units(b, b.wait_least, b.wait_most, others_of(b)), least(b.wait_due_us, b.now_us + ${MAX_TURN_US}));
END $f$;
`;
