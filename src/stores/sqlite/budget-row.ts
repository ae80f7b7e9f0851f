/** A budget as a row of a table, and the clock by which it was written (law B8). */
import { type BudgetState, SharedBudget } from "../../core/limits/shared-budget.ts";
import { damageError } from "./sqlite-errors.ts";

/** One moment, by all that a machine has to tell it. */
export interface MachineInstant {
  /** Which start of the machine it is, empty where nobody can tell. */
  readonly boot: string;
  readonly machineUs: number;
  readonly wallMs: number;
}

export interface BudgetRow {
  readonly key: string;
  /** All but the stamps, as JSON. */
  readonly state: string;
  /** The stamps of all rings, one ring after the other, as doubles: quicker than digits, and shorter. */
  readonly stamps: Uint8Array;
  readonly boot: string;
  readonly machine_us: number;
  readonly wall_ms: number;
}

/** What the JSON holds in place of the rings: how many stamps there are in each. */
interface PackedState extends BudgetState {
  readonly ringSizes: readonly number[];
}

export function budgetOf(row: BudgetRow, now: MachineInstant): SharedBudget {
  const { key, boot, machine_us, wall_ms } = row;
  try {
    const kept = unpacked(row);
    const byUs = shiftUs({ boot, machineUs: machine_us, wallMs: wall_ms }, now);
    return new SharedBudget(byUs === 0 ? kept : shifted(kept, byUs));
  } catch (error) {
    throw damageError(`the budget "${key}" cannot be understood`, error);
  }
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
  // A copy, since the bytes as they come from the file need not begin where a double may.
  const all = new Float64Array(stamps.slice().buffer);
  let end = 0;
  const rings = ringSizes.map(size => {
    end += size;
    return all.subarray(end - size, end);
  });
  if (end !== all.length) throw new RangeError(`${all.length} stamps in place of ${end}`);
  return { ...rest, log: { ...rest.log, rings } };
}

/**
 * By how much instants of the row must be moved to be instants of the machine's clock now: nothing, within one run of
 * the machine. Else the wall clock tells how long ago it was, and may have stepped meanwhile: never in the future.
 *
 * Where nobody can tell one start from another, only what lies ahead of the clock is from before. The rest counts as
 * younger than it is, if anything, so nothing is forgotten too early.
 */
export function shiftUs(then: MachineInstant, now: MachineInstant): number {
  if (then.boot === now.boot && then.machineUs <= now.machineUs) return 0;
  // Less one, since both are whole milliseconds, and what seems younger is safe.
  const agoMs = Math.max(0, now.wallMs - then.wallMs - 1);
  return now.machineUs - agoMs * 1000 - then.machineUs;
}

function shifted({ log, members, ...rest }: BudgetState, byUs: number): BudgetState {
  return {
    ...rest,
    log: {
      ...log,
      lastUs: log.written > 0 ? log.lastUs + byUs : 0,
      rings: log.rings?.map(ring => ring.map(us => us + byUs)),
    },
    members: Object.fromEntries(
      Object.entries(members).map(([name, member]) => [
        name,
        {
          ...member,
          leaseUs: member.leaseUs + byUs,
          nextRequestUs: member.nextRequestUs === undefined ? undefined : member.nextRequestUs + byUs,
        },
      ]),
    ),
  };
}
