/** A process that is this late with its turn loses it. */
export const TURN_TIMEOUT_US = 1_000_000;
/** An exchange cleans up at most this many old entries. */
export const CLEANED_AT_ONCE = 16;

/** `core/limits/turn-queue.ts` in PL/pgSQL. */
export const TURN_QUEUE_FUNCTIONS = `
CREATE OR REPLACE FUNCTION advance_turns(b working_budget) RETURNS working_budget LANGUAGE plpgsql AS $f$
DECLARE
  name text;
  found_turn float8;
  found_start float8;
  found_due_us float8;
BEGIN
  FOR step IN 1..${CLEANED_AT_ONCE} LOOP
    EXIT WHEN b.head >= b.tail;
    found_turn := NULL;
    SELECT t.process INTO name FROM budget_turns AS t WHERE t.budget = b.key AND t.number = b.head;
    IF name = b.process AND b.is_member THEN
      found_turn := b.turn;
      found_start := b.turn_start;
      found_due_us := b.due_us;
    ELSIF name IS NOT NULL THEN
      SELECT m.turn, m.turn_start, m.due_us INTO found_turn, found_start, found_due_us
        FROM budget_members AS m WHERE m.budget = b.key AND m.process = name;
    END IF;
    IF found_turn = b.head THEN
      IF found_due_us + ${TURN_TIMEOUT_US} > b.now_us THEN
        b.head_start := found_start;
        b.head_due_us := found_due_us;
        RETURN b;
      END IF;
      IF name = b.process THEN b.turn := 0;
      ELSE UPDATE budget_members AS m SET turn = 0 WHERE m.budget = b.key AND m.process = name;
      END IF;
      b := end_turn(b, b.head);
    END IF;
    b.head := b.head + 1;
  END LOOP;
  b.head_due_us := -${TURN_TIMEOUT_US};
  IF b.head < b.tail THEN RETURN b; END IF;
  b.head_start := b.turns_end;
  b.waiting := 0;
  RETURN b;
END $f$;

CREATE OR REPLACE FUNCTION end_turn(b working_budget, ended float8) RETURNS working_budget LANGUAGE plpgsql AS $f$
BEGIN
  DELETE FROM budget_turns AS t WHERE t.budget = b.key AND t.number = ended;
  b.waiting := b.waiting - 1;
  RETURN b;
END $f$;

-- Ends the turn of the calling process.
CREATE OR REPLACE FUNCTION leave_turn(b working_budget) RETURNS working_budget LANGUAGE plpgsql AS $f$
DECLARE
  ended float8 := b.turn;
BEGIN
  IF ended = 0 THEN RETURN b; END IF;
  b.turn := 0;
  b := end_turn(b, ended);
  IF ended = b.head THEN b := advance_turns(b); END IF;
  RETURN b;
END $f$;

-- Gives the calling process a turn, unless it has one, and records when it is to ask again.
CREATE OR REPLACE FUNCTION join_turns(b working_budget, units float8, asks_us float8) RETURNS working_budget LANGUAGE plpgsql AS $f$
BEGIN
  IF b.turn = 0 THEN
    b.turn := b.tail;
    b.turn_start := b.turns_end;
    INSERT INTO budget_turns (budget, number, process) VALUES (b.key, b.tail, b.process);
    b.tail := b.tail + 1;
    b.turns_end := b.turns_end + units;
    b.waiting := b.waiting + 1;
  END IF;
  b.due_us := asks_us;
  IF b.turn = b.head THEN
    b.head_start := b.turn_start;
    b.head_due_us := asks_us;
  END IF;
  b.alive_us := greatest(b.alive_us, asks_us + ${TURN_TIMEOUT_US});
  RETURN b;
END $f$;

-- How many other processes wait.
CREATE OR REPLACE FUNCTION others_of(b working_budget) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN
  RETURN b.waiting - CASE WHEN b.turn > 0 THEN 1 ELSE 0 END;
END $f$;

-- Units that are promised to the processes before this one.
CREATE OR REPLACE FUNCTION ahead_of(b working_budget) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $f$
DECLARE
  units float8 := greatest(0, CASE WHEN b.turn > 0 THEN b.turn_start ELSE b.turns_end END - b.head_start);
  turns float8 := CASE WHEN b.turn > 0 THEN b.turn ELSE b.tail END - b.head;
  ended_turns float8 := b.tail - b.head - b.waiting;
BEGIN
  IF others_of(b) = 0 THEN RETURN 0; END IF;
  -- Turns behind the first one may have ended, and it is not known which. All of them count as turns before this one.
  IF ended_turns <= 0 OR turns <= 0 THEN RETURN units; END IF;
  RETURN ceil(units * greatest(0, turns - ended_turns) / turns);
END $f$;
`;
