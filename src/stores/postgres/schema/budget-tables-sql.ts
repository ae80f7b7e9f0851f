/**
 * The tables of the budgets. Each process has a row in each budget, and so has each turn, each entry of the list of
 * leases and each stamp. So an exchange reads and writes a few rows, however many processes there are (law S7). Numbers
 * are float8, as in `core/limits`: they hold microseconds exactly, and both compute the same values.
 */

const BUDGET_COLUMNS = `
  key text,
  written float8,
  pending float8,
  last_us float8,
  has_rings boolean,
  shift_us float8,
  seen_us float8,
  spacing_us float8,
  created_us float8,
  alive_us float8,
  writer text,
  others_us float8,
  head float8,
  tail float8,
  head_start float8,
  turns_end float8,
  head_due_us float8,
  waiting float8,
  lease_head float8,
  lease_tail float8,
  lease_head_us float8,
  limits float8[],
  spans_us float8[],
  lengths_us float8[],
  grains float8[],
  capacities float8[],
  claims text[],
  claim_counts float8[],
  expires_us float8`;

const MEMBER_COLUMNS = `
  process text,
  claim text,
  leased float8,
  lease_us float8,
  entry float8,
  entry_us float8,
  turn float8,
  turn_start float8,
  due_us float8`;

/** Rows that are changed in place need space on their page; the others are added and deleted all the time. */
const CHANGED = "WITH (fillfactor = 50)";
const SHORT_LIVED = "WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000)";

/**
 * A budget of the first format was one row with the whole state. Its units are not converted: each such budget counts
 * as used up at this moment, so that no window gets more than its limit.
 */
const CONVERTED = `
INSERT INTO budgets
  SELECT key, (SELECT max((each->>'limit')::float8) FROM jsonb_array_elements(state::jsonb->'state'->'windows') AS each),
    0, ${"extract(epoch FROM clock_timestamp()) * 1000000"}, false, 0, 0, 0,
    (state::jsonb->'state'->>'createdUs')::float8, -1, '', NULL, 1, 1, 0, 0, -1, 0, 1, 1, -1,
    '{}', '{}', '{}', '{}', '{}', '{}', '{}', expires_us
  FROM old_budgets WHERE jsonb_array_length(state::jsonb->'state'->'windows') > 0;
DROP TABLE old_budgets;`;

export const BUDGET_TABLES = `
ALTER TABLE budgets RENAME TO old_budgets;
ALTER INDEX budgets_pkey RENAME TO old_budgets_pkey;
ALTER INDEX budgets_expired RENAME TO old_budgets_expired;
CREATE TABLE budgets (${BUDGET_COLUMNS}, PRIMARY KEY (key)) ${CHANGED};
CREATE INDEX budgets_expired ON budgets (expires_us);
CREATE TABLE budget_members (budget text, ${MEMBER_COLUMNS}, PRIMARY KEY (budget, process)) ${CHANGED};
CREATE TABLE budget_turns (budget text, number float8, process text, PRIMARY KEY (budget, number)) ${SHORT_LIVED};
CREATE TABLE budget_leases (
  budget text, number float8, check_us float8, process text, PRIMARY KEY (budget, number)) ${SHORT_LIVED};
CREATE TABLE budget_stamps (
  budget text, window_index integer, slot integer, stamp_us float8, PRIMARY KEY (budget, window_index, slot)) ${CHANGED};
ALTER TABLE processes ADD reply float8[], SET (fillfactor = 50);
${CONVERTED}

-- A budget and the entry of the calling process in it, during one exchange.
CREATE TYPE working_budget AS (${BUDGET_COLUMNS}, is_member boolean, ${MEMBER_COLUMNS},
  now_us float8, term_us float8, is_changed boolean, are_claims_changed boolean,
  offer_units float8, offer_usable_us float8, is_alone boolean,
  is_requested boolean, wait_due_us float8, wait_least float8, wait_most float8);
`;
