/** Encodes an exchange as the argument of the database function, and decodes its reply. `exchange-sql.ts` describes both. */
import { claimText } from "../../core/limits/budget-claim.ts";
import { StoreError } from "../../errors.ts";
import type { LeaseReply, LeaseRequest, Settlement, UseReport } from "../store.ts";
import { storableKey } from "./postgres-literal.ts";

/** In place of the units: the store has lost a budget that this process knows. */
const LOST = -1;

export interface ExchangeCall {
  readonly settlements: readonly Settlement[];
  readonly requests: readonly LeaseRequest[];
  readonly reports: readonly UseReport[];
  /** Processes that have ended. */
  readonly dead: readonly string[];
}

/** The units of a settlement. */
export type Amounts = Omit<Settlement, "keys">;

export function callText({ settlements, requests, reports, dead }: ExchangeCall): string {
  const positions = new Map<string, number>();
  const position = (key: string) => {
    const known = positions.get(key) ?? positions.size + 1;
    positions.set(key, known);
    return known;
  };
  const call = {
    settlements: Array.from(sumsOf(settlements), ([key, { written, returned }]) => [position(key), written, returned]),
    reports: reports.map(({ claim, sent, sentAgoUs, known }) => [
      ...[position(claim.key), claimText(claim), sent, known, claim.knownAgoUs ?? -1, sentAgoUs],
    ]),
    requests: requests.map(({ claims, least, most, aheadMs = 0, wantsUse = false }) => [
      ...[least, most, aheadMs * 1000, wantsUse],
      claims.map(claim => [position(claim.key), claimText(claim), claim.knownAgoUs ?? -1]),
    ]),
    keys: Array.from(positions.keys(), storableKey),
    dead,
  };
  return JSON.stringify(call);
}

/**
 * Added up by budget. If a lease has ended, the process settles more units than it still holds. Then all its written
 * units must count before any returned unit.
 */
export function sumsOf(settlements: readonly Settlement[]): ReadonlyMap<string, Amounts> {
  const sums = new Map<string, Amounts>();
  for (const { keys, written, returned } of settlements) {
    for (const key of keys) {
      const sum = sums.get(key) ?? { written: 0, returned: 0 };
      sums.set(key, { written: sum.written + written, returned: sum.returned + returned });
    }
  }
  return sums;
}

export function repliesOf(requests: readonly LeaseRequest[], numbers: readonly number[]): readonly LeaseReply[] {
  let at = 0;
  const next = () => {
    const value = numbers[at];
    if (value === undefined) throw new StoreError("postgres: the reply of the function exchange is too short");
    at += 1;
    return value;
  };
  return requests.map(({ claims, most, wantsUse }): LeaseReply => {
    const keyAt = (position: number) => claims[position - 1]?.key ?? "";
    const units = next();
    if (units === LOST) return { kind: "wait", waitMs: 0.001, key: keyAt(next()), isStricter: false, isLost: true };
    const delayUs = units > 0 ? next() : 0;
    const isOnlyUser = units > 0 && next() === 1;
    const nextMs = units < most ? next() / 1000 : 0;
    const key = units === 0 ? keyAt(next()) : "";
    const isStricter = next() === 1;
    const use = wantsUse ? { use: claims.map(({ windows }) => windows.map(next)) } : {};
    if (units === 0) return { kind: "wait", waitMs: nextMs, key, isStricter, ...use };
    const delay = delayUs > 0 ? { delayMs: delayUs / 1000 } : {};
    const alone = isOnlyUser ? { isOnlyUser: true as const } : {};
    return { kind: "granted", units, ...delay, ...(units < most ? { nextMs } : {}), ...alone, isStricter, ...use };
  });
}
