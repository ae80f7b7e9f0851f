/**
 * The shared budget as a Lua script, which settles and leases on the server in one round trip (law S3).
 *
 * It must behave exactly as `core/limits/shared-budget.ts` with its turn queue, its list of leases and its window log, and
 * uses their order and their names. `test/stores/redis-script.test.ts` runs random traces through both. A change of one
 * needs the same change of the other.
 *
 * A budget is one hash. Field `s` holds the counters, the windows and the different claims. Each process has a field
 * `m:<process>`, each turn `t:<number>`, each entry of the list of leases `l:<number>`, and each stamp
 * `<window>:<mark>`. So a decision reads and writes a few fields, however many processes and units there are (law S7).
 * Numbers are packed as doubles, which hold microseconds exactly and are ten times as fast as printing and parsing.
 *
 * Each call of the script creates every function again. So there are few functions, helpers that are rarely needed are
 * part of the function that needs them, and shared values are in `me` instead of a dozen captured locals.
 *
 * KEYS: the budgets, then the list of processes if the call uses it. A budget is named by its position in KEYS.
 *
 * ARGV:
 *   1  the process
 *   2  the length of a lease in us
 *   3  the epoch of the process
 *   4  the latest time at which the call may have an effect, in us of the server's clock; 0 for any time
 *   5  the current time in us, only in tests; otherwise empty
 *   6  the number of settlements; -1 if the call only uses the list of processes, and then no further argument follows
 *   7  the number of reports
 *   8  the position of the list of processes in KEYS; 0 if the call does not use it
 *   9  the processes that have ended, separated by commas
 *   then for each settlement: budget, leased units or -1, written units, returned units
 *   then for each report: budget, leased units or -1, claim, units sent without a lease, units known in each window,
 *     age of that knowledge in us or -1, us since the newest of the sent units was written, and the units in each
 *     window that the server must know at least, if its data may be older than the last reply; otherwise an empty text
 *   then for each request: number of claims, least, most, number of callers, 1 if the use is wanted, time in us within
 *     which units may become free; and for each claim: budget, leased units or -1, claim, age of the knowledge in us
 *     or -1
 *
 * Reply: the server's time; 0, or -1 for a call that came too late and had no effect; the number of processes, or 0;
 * then for each request either -1 and the position of a claim whose budget is younger than the knowledge of it, or:
 *   the number of grants
 *   for each grant: units, delay in us, 1 if no other process uses the budgets, and, if there are fewer units than
 *     requested, the wait in us for the next ones
 *   if some caller got no units: the wait in us, and the position of the binding claim
 *   1 if another process claims stricter limits, otherwise 0
 *   if the use is wanted: the units in use in each window of each claim
 */
import { createHash } from "node:crypto";
import { BUDGET_HASH } from "./script/budget-hash-lua.ts";
import { CLAIMS } from "./script/claims-lua.ts";
import { EXCHANGE } from "./script/exchange-lua.ts";
import { LEASE_LIST } from "./script/lease-list-lua.ts";
import { PROCESSES } from "./script/processes-lua.ts";
import { SHARED_BUDGET } from "./script/shared-budget-lua.ts";
import { TURN_QUEUE } from "./script/turn-queue-lua.ts";
import { WINDOW_LOG } from "./script/window-log-lua.ts";

/** The parts in the order in which they use each other. */
export const SCRIPT = [
  PROCESSES,
  BUDGET_HASH,
  WINDOW_LOG,
  TURN_QUEUE,
  CLAIMS,
  LEASE_LIST,
  SHARED_BUDGET,
  EXCHANGE,
].join("");

export const SCRIPT_SHA = createHash("sha1").update(SCRIPT).digest("hex");
