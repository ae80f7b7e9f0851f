/** Encodes a batch as arguments of the script, and decodes its reply. `redis-script.ts` describes both formats. */

import { claimText } from "../../core/limits/budget-claim.ts";
import type { LeaseReply, StoreClaim } from "../store.ts";
import type { RedisBatch } from "./redis-batch.ts";
import type { RedisLedger } from "./redis-ledger.ts";

/** The calling process, and the latest time at which the call may have an effect. */
export interface ScriptCaller {
  readonly process: string;
  readonly leaseUs: number;
  /** By the server's clock; 0 for no limit, until the first reply has shown that clock. */
  readonly notAfterUs: number;
  /** Replaces the server's clock in tests. */
  readonly timeUs?: number | undefined;
}

export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** The index of the argument that holds the position of the list of processes. */
const PRESENCE_AT = 7;
/** In place of the number of grants: the server has lost a budget that this process knows. */
const LOST = -1;

/** An age that is above the age of every budget, so that the server replies that it has lost the budget. */
const BEFORE_ALL_US = 9e15;

export interface BatchCaller extends ScriptCaller {
  readonly keyOf: (key: string) => string;
  /** Whether the server may lack the last changes of this budget. @default false for all */
  readonly mayLackChanges?: (key: string) => boolean;
  /** The list of processes, if the entry of this process is to be renewed. */
  readonly presenceKey?: string | undefined;
  /** Processes that have ended. @default none */
  readonly dead?: readonly string[];
}

export function scriptCallOf(batch: RedisBatch, ledger: RedisLedger, caller: BatchCaller): ScriptCall {
  const { keyOf, mayLackChanges = () => false, presenceKey, dead = [] } = caller;
  const positions = new Map<string, string>();
  const position = (key: string) => {
    const existing = positions.get(key);
    if (existing !== undefined) return existing;
    const next = String(positions.size + 1);
    positions.set(key, next);
    return next;
  };
  const args = [...headOf(caller, ledger.epoch), String(batch.settlements.size), String(batch.reports.length), "0"];
  args.push(dead.join(","));
  for (const [key, { written, returned }] of batch.settlements)
    args.push(position(key), String(ledger.unitsToReport(key, 0)), String(written), String(returned));
  const reported = new Set(batch.reports.map(({ claim }) => claim.key));
  for (const { claim, sent, sentAgoUs, known, lastReplied = known } of batch.reports) {
    const { written = 0, returned = 0 } = batch.settlements.get(claim.key) ?? {};
    const leased = ledger.unitsToReport(claim.key, written + returned);
    args.push(position(claim.key), String(leased), claimText(claim), String(sent), known.join(","));
    args.push(
      String(claim.knownAgoUs ?? -1),
      String(sentAgoUs),
      mayLackChanges(claim.key) ? lastReplied.join(",") : "",
    );
  }
  const knownAgoUs = ({ key, knownAgoUs: agoUs = -1 }: StoreClaim) =>
    agoUs >= 0 && !reported.has(key) && mayLackChanges(key) ? BEFORE_ALL_US : agoUs;
  for (const { request, onReply } of batch.pending.values()) {
    args.push(String(request.claims.length), String(request.least), String(request.most), String(onReply.length));
    args.push(request.wantsUse ? "1" : "0", String(Math.round((request.aheadMs ?? 0) * 1000)));
    for (const claim of request.claims) {
      const { written = 0, returned = 0 } = batch.settlements.get(claim.key) ?? {};
      args.push(position(claim.key), String(ledger.unitsToReport(claim.key, written + returned)), claimText(claim));
      args.push(String(knownAgoUs(claim)));
    }
  }
  const keys = Array.from(positions.keys(), keyOf);
  if (presenceKey === undefined) return { keys, args };
  args[PRESENCE_AT] = String(keys.length + 1);
  return { keys: [...keys, presenceKey], args };
}

/**
 * Only adds the process to the list of processes that use the store; a lease of 0 removes it. A store sends this call
 * first, because it is short. If a client that has not logged in sends more than ten words, the server closes the
 * connection and gives no reason.
 */
export function presenceCallOf(caller: ScriptCaller, key: string): ScriptCall {
  return { keys: [key], args: [...headOf(caller, 0), "-1"] };
}

export interface ScriptReply {
  readonly serverUs: number;
  /** How many processes use the store; 0 if the call did not ask for it. */
  readonly processes: number;
  /** Undefined for a call that came too late and had no effect. */
  readonly rest: readonly number[] | undefined;
}

export function readReply(reply: unknown): ScriptReply {
  const [serverUs, state, processes = 0, ...rest] = Array.isArray(reply)
    ? (reply as readonly unknown[]).map(Number)
    : [];
  if (serverUs === undefined || !Number.isSafeInteger(serverUs))
    throw new TypeError("unexpected reply of the Lua script");
  return { serverUs, processes, rest: state === 0 ? rest : undefined };
}

/** For each request of the batch, the reply to each of its callers. */
export function leaseRepliesOf(batch: RedisBatch, numbers: readonly number[]): readonly (readonly LeaseReply[])[] {
  let at = 0;
  const next = () => {
    const value = numbers[at];
    if (value === undefined) throw new TypeError("the reply of the Lua script is too short");
    at += 1;
    return value;
  };
  return Array.from(batch.pending.values(), ({ request, onReply }) => {
    const first = next();
    if (first === LOST) {
      const key = request.claims[next() - 1]?.key ?? "";
      return onReply.map(() => ({ kind: "wait", waitMs: 0.001, key, isStricter: false, isLost: true }));
    }
    const granted = Array.from({ length: first }, () => {
      const units = next();
      const delayUs = next();
      const delay = delayUs > 0 ? { delayMs: delayUs / 1000 } : {};
      const alone = next() === 1 ? { isOnlyUser: true as const } : {};
      return { units, ...delay, ...alone, ...(units < request.most ? { nextMs: next() / 1000 } : {}) };
    });
    const isRefused = granted.length < onReply.length;
    const waitMs = isRefused ? next() / 1000 : 0;
    const key = isRefused ? (request.claims[next() - 1]?.key ?? "") : "";
    const isStricter = next() === 1;
    const use = request.wantsUse ? { use: request.claims.map(({ windows }) => windows.map(next)) } : {};
    return onReply.map((_, index): LeaseReply => {
      const grant = granted[index];
      return grant === undefined
        ? { kind: "wait", waitMs, key, isStricter, ...use }
        : { kind: "granted", ...grant, isStricter, ...use };
    });
  });
}

function headOf({ process, leaseUs, notAfterUs, timeUs }: ScriptCaller, epoch: number): string[] {
  return [process, String(leaseUs), String(epoch), String(notAfterUs), timeUs === undefined ? "" : String(timeUs)];
}
