/**
 * The shared budget as a Lua script, which settles and leases on the server in one round trip (law S3).
 *
 * It must behave exactly as `core/limits/shared-budget.ts` with its turn queue, its list of leases and its window log, and
 * uses their order and their names; `test/stores/redis-script.test.ts` runs random traces through both. A change of one needs the same
 * change of the other.
 *
 * A budget is one hash. Field `s` holds the counters, the windows and the different claims. Each process has a field
 * `m:<process>`, each turn `t:<number>`, each entry of the list of leases `l:<number>`, and each stamp
 * `<window>:<mark>`, so that a decision reads and writes a few fields, however many processes and units there are (law
 * S7). Numbers are packed as doubles, which hold microseconds exactly and are ten times as fast as printing and parsing.
 *
 * Each call of the script creates every function again. So there are few functions, helpers that are rarely needed are
 * part of the function that needs them, and shared values are in `me` instead of a dozen captured locals.
 *
 *   KEYS   the budgets, and the list of processes if it is used
 *   ARGV   process, lease in us, epoch, latest time (us of the server's clock, 0 for any), current time (tests only),
 *          the number of settlements, or -1 if only the list of processes is used, the number of reports, the position of
 *          the list of processes or 0, the processes that have ended, separated by commas, then
 *          for each settlement  budget, leased units or -1, written, returned
 *          for each report      budget, leased units or -1, claim, units sent without a lease, units known in each window,
 *                               age of that knowledge in us or -1, us since the newest of the units sent was written,
 *                               units in each window that the server must know at least if its data may be older than
 *                               the last reply, or an empty text
 *          for each request     number of claims, least, most, number of callers, 1 if the use is wanted, time in us in
 *                               which units may become free, then for each claim  budget, leased units or -1, claim, age of the knowledge in us or -1
 *   reply  the server's time, 0 (or -1 for a call that came too late and had no effect), the number of processes or 0, then
 *          for each request     number of grants, for each its units, the delay in us, 1 if no other process uses the
 *                               budgets, and, if it has fewer units than asked for, the wait in us for the next ones; then, if some caller got none, the wait in
 *                               us and the position of the binding claim; then 1 if another process claims stricter limits,
 *                               then, if it is wanted, the units in use in each window of each claim;
 *                               or -1 and the position of a claim whose budget is younger than the knowledge of it
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
