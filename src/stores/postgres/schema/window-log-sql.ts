/** `core/limits/window-log.ts` in PL/pgSQL. */
export const WINDOW_LOG_FUNCTIONS = `
CREATE OR REPLACE FUNCTION stamp_us(b working_budget, i integer, unit float8) RETURNS float8 LANGUAGE plpgsql STABLE AS $f$
DECLARE
  mark float8;
  newest float8;
  stored_us float8;
BEGIN
  IF unit <= 0 THEN RETURN '-Infinity'; END IF;
  IF unit > b.written THEN RETURN b.now_us; END IF;
  IF NOT b.has_rings THEN RETURN b.last_us; END IF;
  mark := ceil(unit / b.grains[i]);
  newest := floor(b.written / b.grains[i]);
  IF mark > newest THEN RETURN b.last_us; END IF;
  IF mark <= newest - b.capacities[i] THEN RETURN '-Infinity'; END IF;
  SELECT s.stamp_us INTO stored_us FROM budget_stamps AS s
    WHERE s.budget = b.key AND s.window_index = i AND s.slot = mod(mark::bigint, b.capacities[i]::bigint);
  -- A missing stamp counts as the latest one, so that a damaged budget never grants too much.
  RETURN coalesce(stored_us, b.last_us);
END $f$;

CREATE OR REPLACE FUNCTION put_stamps(b working_budget, i integer, first_mark float8, last_mark float8, at_us float8)
RETURNS void LANGUAGE sql AS $f$
  INSERT INTO budget_stamps (budget, window_index, slot, stamp_us)
    SELECT b.key, i, mod(mark, b.capacities[i]::bigint), at_us
    FROM generate_series(first_mark::bigint, last_mark::bigint) AS mark
    ON CONFLICT (budget, window_index, slot) DO UPDATE SET stamp_us = excluded.stamp_us;
$f$;

CREATE OR REPLACE FUNCTION write_units(b working_budget, units float8, wanted_us float8) RETURNS working_budget LANGUAGE plpgsql AS $f$
DECLARE
  at_us float8 := CASE WHEN b.written > 0 THEN greatest(wanted_us, b.last_us) ELSE wanted_us END;
  first float8 := b.written + 1;
  newest float8;
BEGIN
  IF b.written > 0 AND NOT b.has_rings AND at_us <> b.last_us THEN
    b.has_rings := true;
    FOR i IN 1..cardinality(b.limits) LOOP
      newest := floor(b.written / b.grains[i]);
      PERFORM put_stamps(b, i, greatest(1, newest - b.capacities[i] + 1), newest, b.last_us);
    END LOOP;
  END IF;
  b.written := b.written + units;
  b.last_us := at_us;
  IF NOT b.has_rings THEN RETURN b; END IF;
  FOR i IN 1..cardinality(b.limits) LOOP
    newest := floor(b.written / b.grains[i]);
    PERFORM put_stamps(b, i, greatest(ceil(first / b.grains[i]), newest - b.capacities[i] + 1), newest, at_us);
  END LOOP;
  RETURN b;
END $f$;

-- Writes units of a process; '' stands for any process. The number reserved of them were leased.
CREATE OR REPLACE FUNCTION write_by(b working_budget, name text, units float8, at_us float8, reserved float8)
RETURNS working_budget LANGUAGE plpgsql AS $f$
BEGIN
  IF b.writer <> name OR name = '' THEN
    b.others_us := CASE WHEN b.written > 0 THEN b.last_us END;
    b.writer := name;
  END IF;
  b.pending := b.pending - reserved;
  RETURN write_units(b, units, at_us);
END $f$;

-- Units that count now in a window: at most its limit of written ones, and all pending ones. Stamps never decrease, so
-- the number of stored stamps within the window gives the first unit that counts.
CREATE OR REPLACE FUNCTION used_units(b working_budget, i integer) RETURNS float8 LANGUAGE plpgsql STABLE AS $f$
DECLARE
  since_us float8 := b.now_us - b.spans_us[i];
  first float8 := greatest(1, b.written - b.limits[i] + 1);
  recent float8;
BEGIN
  IF b.written = 0 OR b.last_us <= since_us THEN RETURN b.pending; END IF;
  IF b.has_rings THEN
    SELECT count(*) INTO recent FROM budget_stamps AS s
      WHERE s.budget = b.key AND s.window_index = i AND s.stamp_us > since_us;
    first := greatest(first, (floor(b.written / b.grains[i]) - recent) * b.grains[i] + 1);
  END IF;
  RETURN b.written + 1 - first + b.pending;
END $f$;

-- The earliest time at which this many more units may be written.
CREATE OR REPLACE FUNCTION free_us(b working_budget, units float8) RETURNS float8 LANGUAGE plpgsql STABLE AS $f$
DECLARE
  free_us float8 := spaced_us(b);
  unit float8 := b.written + b.pending + units;
BEGIN
  FOR i IN 1..cardinality(b.limits) LOOP
    IF unit > b.limits[i] THEN free_us := greatest(free_us, stamp_us(b, i, unit - b.limits[i]) + b.spans_us[i]); END IF;
  END LOOP;
  RETURN free_us;
END $f$;

CREATE OR REPLACE FUNCTION spaced_us(b working_budget) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN
  IF b.spacing_us = 0 THEN RETURN 0; END IF;
  IF b.pending > 0 THEN RETURN b.now_us + b.spacing_us; END IF;
  RETURN CASE WHEN b.written > 0 THEN b.last_us + b.spacing_us ELSE 0 END;
END $f$;

-- As free_us, if other units are written first, and all as early as the windows permit.
CREATE OR REPLACE FUNCTION expected_us(b working_budget, units float8) RETURNS float8 LANGUAGE plpgsql STABLE AS $f$
DECLARE
  expected_us float8 := CASE WHEN b.spacing_us > 0 THEN spaced_us(b) + (units - 1) * b.spacing_us ELSE 0 END;
  unit float8;
  rounds float8;
  window_us float8;
BEGIN
  FOR i IN 1..cardinality(b.limits) LOOP
    unit := b.written + b.pending + units - b.limits[i];
    rounds := CASE WHEN unit > b.written THEN ceil((unit - b.written) / b.limits[i]) ELSE 0 END;
    window_us := stamp_us(b, i, unit - rounds * b.limits[i]) + b.spans_us[i];
    IF rounds > 0 THEN window_us := greatest(b.now_us, window_us) + rounds * b.spans_us[i]; END IF;
    expected_us := greatest(expected_us, window_us);
  END LOOP;
  RETURN expected_us;
END $f$;
`;
