/** An exchange that sweeps deletes at most this many expired rows of each table. */
const SWEPT_AT_ONCE = 200;
/** Each process counts the processes at most once in this time: the cost grows with their number. */
const COUNTED_US = 1_000_000;
/** The SQLSTATE of an exchange that its process has given up: it must have no effect. */
export const GIVEN_UP = "DT002";
/** A budget is kept at least this long after it can no longer delay a request. */
const MARGIN_US = 1_000_000;

/**
 * `stores/exchange.ts` in PL/pgSQL: one exchange is one call of `exchange`, at the clock of the server.
 *
 * The argument `call` is an object. A budget is named by its position in `keys`, from 1.
 *   keys         the budgets
 *   dead         the processes that have ended
 *   settlements  for each: [budget, written units, returned units]
 *   reports      for each: [budget, claim, units sent without a lease, units known in each window, age of that
 *                knowledge in us or -1, us since the newest of the sent units was written]
 *   requests     for each: [least, most, time in us within which units may become free, whether the use is wanted,
 *                claims], with each claim as [budget, claim, age of the knowledge in us or -1]
 *
 * `reply` has for each request either -1 and the position of a claim whose budget the store has lost, or:
 *   the units
 *   if there are units: the delay in us, and 1 if no other process uses the budgets
 *   if there are fewer units than requested: the wait in us for the next ones
 *   if there are no units: the position of the binding claim
 *   1 if another process claims stricter limits, otherwise 0
 *   if the use is wanted: the units in use in each window of each claim
 *
 * The number of the exchange and its reply are stored with its process. A process that got no reply calls `resume` with
 * the number of that exchange. If the exchange has taken effect, `resume` returns the number and the reply. If not, it
 * stores the number without a reply: an exchange that still waits for a lock then has no effect, and the call can be
 * repeated if its own reply is lost.
 */
export const EXCHANGE_FUNCTIONS = `
CREATE OR REPLACE FUNCTION clock_us() RETURNS float8 LANGUAGE sql VOLATILE AS $f$
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::float8;
$f$;

CREATE OR REPLACE FUNCTION lock_of(key text) RETURNS bigint LANGUAGE sql STABLE AS $f$
  SELECT hashtextextended(current_schema() || ' ' || key, 5577);
$f$;

CREATE OR REPLACE FUNCTION load_budget(budget_key text, caller text, clock float8, term float8) RETURNS working_budget LANGUAGE plpgsql AS $f$
DECLARE
  b working_budget;
  stored budgets;
BEGIN
  SELECT s.* INTO stored FROM budgets AS s WHERE s.key = budget_key;
  IF NOT FOUND THEN
    stored := ROW(budget_key, 0, 0, 0, false, 0, 0, 0, -1, -1, '', NULL, 1, 1, 0, 0, -1, 0, 1, 1, -1,
      '{}', '{}', '{}', '{}', '{}', '{}', '{}', 0);
  END IF;
  SELECT stored.*, m.budget IS NOT NULL, caller, m.claim, coalesce(m.leased, 0), coalesce(m.lease_us, 0),
      coalesce(m.entry, 0), coalesce(m.entry_us, 0), coalesce(m.turn, 0), coalesce(m.turn_start, 0), coalesce(m.due_us, 0)
    INTO b FROM (SELECT) AS one LEFT JOIN budget_members AS m ON m.budget = budget_key AND m.process = caller;
  -- If the clock was set back, or another machine took over, the time of the budget continues from the last time seen.
  b.now_us := greatest(clock + b.shift_us, b.seen_us);
  IF b.now_us > clock + b.shift_us THEN
    -- The time since then is not known, so the budget is older than it seems. A process that knows it must not take it
    -- for lost: one that uses it has asked within a lease.
    b.created_us := least(b.created_us, b.now_us - term);
  END IF;
  b.shift_us := b.now_us - clock;
  b.seen_us := b.now_us;
  b.term_us := term;
  b.is_changed := false;
  b.are_claims_changed := false;
  b.is_requested := false;
  RETURN b;
END $f$;

CREATE OR REPLACE FUNCTION save_budget(b working_budget, clock float8) RETURNS void LANGUAGE plpgsql AS $f$
DECLARE
  longest_us float8 := b.spacing_us;
  needed_us float8;
BEGIN
  FOR i IN 1..cardinality(b.spans_us) LOOP longest_us := greatest(longest_us, b.spans_us[i]); END LOOP;
  -- By then all leases and turns have ended and every window has passed. Moved by twice the time, so that the index
  -- changes seldom.
  needed_us := greatest(b.term_us, b.alive_us - b.now_us) + longest_us + ${MARGIN_US};
  IF b.expires_us < clock + needed_us THEN b.expires_us := clock + 2 * needed_us; END IF;
  INSERT INTO budgets AS s SELECT b.key, b.written, b.pending, b.last_us, b.has_rings, b.shift_us, b.seen_us, b.spacing_us,
      b.created_us, b.alive_us, b.writer, b.others_us, b.head, b.tail, b.head_start, b.turns_end, b.head_due_us, b.waiting,
      b.lease_head, b.lease_tail, b.lease_head_us, b.limits, b.spans_us, b.lengths_us, b.grains, b.capacities, b.claims,
      b.claim_counts, b.expires_us
    ON CONFLICT (key) DO UPDATE SET written = excluded.written, pending = excluded.pending, last_us = excluded.last_us,
      has_rings = excluded.has_rings, shift_us = excluded.shift_us, seen_us = excluded.seen_us,
      spacing_us = excluded.spacing_us, created_us = excluded.created_us, alive_us = excluded.alive_us,
      writer = excluded.writer, others_us = excluded.others_us, head = excluded.head, tail = excluded.tail,
      head_start = excluded.head_start, turns_end = excluded.turns_end, head_due_us = excluded.head_due_us,
      waiting = excluded.waiting, lease_head = excluded.lease_head, lease_tail = excluded.lease_tail,
      lease_head_us = excluded.lease_head_us, limits = excluded.limits, spans_us = excluded.spans_us,
      lengths_us = excluded.lengths_us, grains = excluded.grains, capacities = excluded.capacities,
      claims = excluded.claims, claim_counts = excluded.claim_counts, expires_us = excluded.expires_us;
  INSERT INTO budget_members AS m SELECT b.key, b.process, b.claim, b.leased, b.lease_us, b.entry, b.entry_us, b.turn,
      b.turn_start, b.due_us
    ON CONFLICT (budget, process) DO UPDATE SET claim = excluded.claim, leased = excluded.leased,
      lease_us = excluded.lease_us, entry = excluded.entry, entry_us = excluded.entry_us, turn = excluded.turn,
      turn_start = excluded.turn_start, due_us = excluded.due_us;
END $f$;

CREATE OR REPLACE FUNCTION is_lost(b working_budget, known_ago_us float8) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN
  RETURN known_ago_us >= 0 AND (b.created_us < 0 OR b.created_us > b.now_us - known_ago_us);
END $f$;

CREATE OR REPLACE FUNCTION exchange(
  caller text, exchange_number bigint, term_us float8, call jsonb, counted_us float8, is_sweeping boolean, test_us float8,
  OUT now_us float8, OUT process_count bigint, OUT reply float8[]) LANGUAGE plpgsql AS $f$
DECLARE
  keys text[] := ARRAY(SELECT jsonb_array_elements_text(call->'keys'));
  dead text[] := ARRAY(SELECT jsonb_array_elements_text(call->'dead'));
  bs working_budget[] := '{}';
  b working_budget;
  each jsonb;
  claim jsonb;
  at integer;
BEGIN
  -- Locked in one order, so that no two processes wait for each other.
  PERFORM pg_advisory_xact_lock(lock) FROM (SELECT DISTINCT lock_of(key) AS lock FROM unnest(keys) AS key ORDER BY lock) AS locks;
  now_us := coalesce(test_us, clock_us());
  reply := '{}';
  FOR at IN 1..cardinality(keys) LOOP bs[at] := load_budget(keys[at], caller, now_us, term_us); END LOOP;
  FOR each IN SELECT jsonb_array_elements(call->'settlements') LOOP
    at := each->0;
    bs[at] := settle(bs[at], (each->1)::float8, (each->2)::float8);
  END LOOP;
  FOR each IN SELECT jsonb_array_elements(call->'reports') LOOP
    at := each->0;
    bs[at] := report_use(bs[at], each->>1, (each->2)::float8,
      (each->5)::float8, ARRAY(SELECT jsonb_array_elements(each->3)::float8), is_lost(bs[at], (each->4)::float8), dead);
  END LOOP;
  FOR each IN SELECT jsonb_array_elements(call->'requests') LOOP
    SELECT l.budgets, reply || l.numbers INTO bs, reply FROM lease(bs, each, dead) AS l;
  END LOOP;
  FOR at IN 1..cardinality(keys) LOOP
    b := bs[at];
    IF b.is_requested THEN b := set_waiting(b); END IF;
    IF b.is_changed THEN PERFORM save_budget(b, now_us); END IF;
  END LOOP;
  INSERT INTO processes AS p (id, seen_us, exchange, reply)
    VALUES (caller, floor(exchange.now_us), exchange_number, exchange.reply)
    ON CONFLICT (id) DO UPDATE SET seen_us = excluded.seen_us, exchange = excluded.exchange, reply = excluded.reply
    WHERE p.exchange < excluded.exchange;
  IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = '${GIVEN_UP}', MESSAGE = 'the process has given up this exchange'; END IF;
  IF now_us - counted_us >= ${COUNTED_US} THEN
    SELECT count(*) INTO process_count FROM processes AS p WHERE p.seen_us > now_us - term_us;
  END IF;
  IF is_sweeping THEN PERFORM sweep(now_us, term_us); END IF;
END $f$;

-- Leases the same number of units from every budget of a request, or none.
CREATE OR REPLACE FUNCTION lease(INOUT budgets working_budget[], request jsonb, dead text[], OUT numbers float8[]) LANGUAGE plpgsql AS $f$
DECLARE
  least_units float8 := request->0;
  most_units float8 := request->1;
  ahead_us float8 := request->2;
  claims jsonb := request->4;
  last integer := jsonb_array_length(request->4) - 1;
  at integer;
  b working_budget;
  free_now float8 := most_units;
  delay_us float8 := 0;
  units float8;
  offers float8[] := '{}';
  wait_us float8 := 1;
  due float8;
  binding integer := 1;
  are_alone boolean := true;
  is_overruled boolean := false;
BEGIN
  FOR c IN 0..last LOOP
    at := claims->c->0;
    IF is_lost(budgets[at], (claims->c->2)::float8) THEN
      numbers := ARRAY[-1, c + 1];
      RETURN;
    END IF;
  END LOOP;
  FOR c IN 0..last LOOP
    at := claims->c->0;
    budgets[at] := join_budget(budgets[at], claims->c->>1, dead);
    is_overruled := is_overruled OR is_stricter(budgets[at], claims->c->>1);
  END LOOP;
  FOR c IN 0..last LOOP
    at := claims->c->0;
    b := offer(budgets[at], claims->c->>1, least_units, most_units, ahead_us);
    free_now := least(free_now, b.offer_units);
    delay_us := greatest(delay_us, coalesce(b.offer_usable_us - b.now_us, 'Infinity'));
    offers[c] := b.offer_units;
    are_alone := are_alone AND b.is_alone;
    budgets[at] := b;
  END LOOP;
  units := CASE WHEN free_now = 0 AND delay_us <= ahead_us THEN least_units ELSE free_now END;
  FOR c IN 0..last LOOP
    at := claims->c->0;
    b := budgets[at];
    b.is_requested := true;
    IF units > 0 THEN b := reserve(b, units); END IF;
    budgets[at] := b;
  END LOOP;
  FOR c IN 0..last LOOP
    at := claims->c->0;
    b := budgets[at];
    IF units < most_units AND offers[c] = free_now THEN
      due := greatest(b.now_us, due_us(b, least_units));
      IF due - b.now_us > wait_us THEN
        wait_us := due - b.now_us;
        binding := c + 1;
      END IF;
      -- A process that got units while no other process waits needs no turn: the next one that asks is served first.
      IF (units = 0 OR others_of(b) > 0) AND (b.wait_due_us IS NULL OR b.wait_due_us <= due) THEN
        b.wait_due_us := due;
        b.wait_least := least_units;
        b.wait_most := most_units;
        budgets[at] := b;
      END IF;
    END IF;
  END LOOP;
  numbers := ARRAY[units];
  IF units > 0 THEN
    numbers := numbers || CASE WHEN free_now = 0 THEN delay_us ELSE 0 END || CASE WHEN are_alone THEN 1 ELSE 0 END::float8;
  END IF;
  IF units < most_units THEN numbers := numbers || wait_us; END IF;
  IF units = 0 THEN numbers := numbers || binding::float8; END IF;
  numbers := numbers || CASE WHEN is_overruled THEN 1 ELSE 0 END::float8;
  IF (request->3)::boolean THEN
    FOR c IN 0..last LOOP
      at := claims->c->0;
      numbers := numbers || use_of(budgets[at], claims->c->>1);
    END LOOP;
  END IF;
END $f$;

-- For a process that got no reply to its last exchange: the number and the reply of its last exchange that took effect.
-- The reply is null if the number is that of an exchange that was given up.
CREATE OR REPLACE FUNCTION resume(caller text, exchange_number bigint, OUT last_exchange bigint, OUT last_reply float8[])
LANGUAGE plpgsql AS $f$
BEGIN
  -- With the present time: if a sweep deleted the row, the exchange that is given up here could still take effect.
  INSERT INTO processes (id, seen_us, exchange) VALUES (caller, clock_us(), 0) ON CONFLICT (id) DO NOTHING;
  SELECT p.exchange, p.reply INTO last_exchange, last_reply FROM processes AS p WHERE p.id = caller FOR UPDATE;
  UPDATE processes AS p SET seen_us = greatest(p.seen_us, clock_us()), exchange = exchange_number, reply = NULL
    WHERE p.id = caller AND p.exchange < exchange_number;
END $f$;

CREATE OR REPLACE FUNCTION sweep(clock float8, term float8) RETURNS void LANGUAGE plpgsql AS $f$
DECLARE
  expired text[] := ARRAY(SELECT s.key FROM budgets AS s WHERE s.expires_us < clock LIMIT ${SWEPT_AT_ONCE});
  gone text[];
BEGIN
  -- Budgets that another process uses are left alone.
  expired := ARRAY(SELECT key FROM unnest(expired) AS key WHERE pg_try_advisory_xact_lock(lock_of(key)));
  WITH deleted AS (DELETE FROM budgets AS s WHERE s.key = ANY (expired) AND s.expires_us < clock RETURNING s.key)
    SELECT array_agg(key) INTO gone FROM deleted;
  DELETE FROM budget_members WHERE budget = ANY (gone);
  DELETE FROM budget_turns WHERE budget = ANY (gone);
  DELETE FROM budget_leases WHERE budget = ANY (gone);
  DELETE FROM budget_stamps WHERE budget = ANY (gone);
  DELETE FROM records WHERE name IN (
    SELECT name FROM records WHERE keep_until_us < clock LIMIT ${SWEPT_AT_ONCE} FOR UPDATE SKIP LOCKED);
  DELETE FROM processes WHERE id IN (
    SELECT id FROM processes WHERE seen_us < clock - 10 * term LIMIT ${SWEPT_AT_ONCE} FOR UPDATE SKIP LOCKED);
END $f$;
`;
