/** A budget as a row of the table `budgets`, with the instant at which it was written (law B8). */
import type { BudgetTables } from "../../core/limits/budget-tables.ts";
import { type BudgetState, SharedBudget } from "../../core/limits/shared-budget.ts";
import { WindowLog } from "../../core/limits/window-log.ts";
import { type MachineInstant, shiftUs } from "./machine-instant.ts";

export interface BudgetRow {
  readonly key: string;
  /** The state without its stamps, as JSON. */
  readonly state: string;
  /** The stamps of all rings, one ring after the other. Doubles are faster to read than JSON, and shorter. */
  readonly stamps: Uint8Array;
  readonly boot: string;
  readonly machine_us: number;
  readonly wall_ms: number;
}

/** The JSON has the size of each ring instead of its stamps. */
interface PackedState extends BudgetState {
  readonly ringSizes: readonly number[];
}

/**
 * The budget of a row; undefined if it cannot be parsed. `tablesOf` gets the microseconds by which the stored instants
 * are to be shifted.
 */
export function budgetOf(
  row: BudgetRow,
  now: MachineInstant,
  tablesOf: (byUs: number) => BudgetTables,
): SharedBudget | undefined {
  const { boot, machine_us, wall_ms } = row;
  const byUs = shiftUs({ boot, machineUs: machine_us, wallMs: wall_ms }, now);
  let state: BudgetState;
  try {
    const stored = unpacked(row);
    const current = byUs === 0 ? stored : shifted(stored, byUs);
    state = isBeforeVersion4(current) ? upgraded(current, now.machineUs) : current;
    if (!isValid(state)) return undefined;
  } catch {
    return undefined;
  }
  return new SharedBudget(state, tablesOf(byUs));
}

export function rowOf(key: string, budget: SharedBudget, { boot, machineUs, wallMs }: MachineInstant): BudgetRow {
  const { log, ...rest } = budget.dump();
  const { rings = [], ...counts } = log;
  const ringSizes = rings.map(ring => ring.length);
  const packed: PackedState = { ...rest, log: counts, ringSizes };
  const stamps = new Float64Array(ringSizes.reduce((sum, size) => sum + size, 0));
  let end = 0;
  for (const ring of rings) {
    stamps.set(ring, end);
    end += ring.length;
  }
  const bytes = new Uint8Array(stamps.buffer);
  return { key, state: JSON.stringify(packed), stamps: bytes, boot, machine_us: machineUs, wall_ms: wallMs };
}

function unpacked({ state, stamps }: BudgetRow): BudgetState {
  const { ringSizes, ...rest }: PackedState = JSON.parse(state);
  if (ringSizes.length === 0) return rest;
  // A copy: the bytes from the file need not be aligned for doubles.
  const all = new Float64Array(stamps.slice().buffer);
  let end = 0;
  const rings = ringSizes.map(size => {
    end += size;
    return all.subarray(end - size, end);
  });
  if (end !== all.length) throw new RangeError(`expected ${end} stamps, found ${all.length}`);
  return { ...rest, log: { ...rest.log, rings } };
}

/** Whether all values on which decisions depend are finite numbers: a file may contain anything. */
function isValid({ log, windows, lengthsUs, spacingUs, turns, leases }: BudgetState): boolean {
  const numbers = [log.written, log.pending, log.lastUs, spacingUs, turns.head, turns.tail, turns.waiting, leases.head];
  const ofWindows = windows.flatMap(({ limit, spanUs, grain, capacity }) => [limit, spanUs, grain, capacity]);
  return windows.length === lengthsUs.length && [...numbers, ...ofWindows, leases.tail].every(Number.isFinite);
}

function shifted(state: BudgetState, byUs: number): BudgetState {
  const { log, createdUs = 0, turns, leases, ...rest } = state;
  return {
    ...rest,
    createdUs: createdUs + byUs,
    aliveUs: rest.aliveUs + byUs,
    othersUs: rest.othersUs === undefined ? undefined : rest.othersUs + byUs,
    turns: turns && { ...turns, headDueUs: turns.headDueUs + byUs },
    leases: leases && { ...leases, headUs: leases.headUs + byUs },
    log: {
      ...log,
      lastUs: log.written > 0 ? log.lastUs + byUs : 0,
      rings: log.rings?.map(ring => ring.map(us => us + byUs)),
    },
  };
}

/** Before format version 4 the processes of a budget were part of its state. */
function isBeforeVersion4(state: BudgetState): boolean {
  return state.turns === undefined;
}

/**
 * Keeps the windows and the units that were written in them. The processes that wrote the file have ended, so the units
 * that they had leased count as written now.
 */
function upgraded({ log, windows, lengthsUs, createdUs = 0 }: BudgetState, nowUs: number): BudgetState {
  const restored = WindowLog.restore(log);
  if (log.pending > 0) restored.writeReserved(windows, log.pending, nowUs);
  return { ...new SharedBudget().dump(), log: restored.dump(), windows, lengthsUs, createdUs };
}
