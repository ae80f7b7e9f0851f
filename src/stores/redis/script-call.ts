/** Encodes a batch as arguments of the script, and decodes its reply. `redis-script.ts` describes both formats. */

import type { LeaseReply } from "../store.ts";
import { claimText, type RedisBatch } from "./redis-batch.ts";
import type { RedisLedger } from "./redis-ledger.ts";

/** The calling process, and the latest time at which the call may have an effect. */
export interface ScriptCaller {
  readonly process: string;
  readonly leaseUs: number;
  /** By the server's clock; 0 for any time, before the first reply has shown that clock. */
  readonly notAfterUs: number;
  /** Replaces the server's clock in tests. */
  readonly timeUs?: number | undefined;
}

export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** In place of the number of grants: the server has lost a budget that this process knows. */
const LOST = -1;

export function scriptCallOf(
  batch: RedisBatch,
  ledger: RedisLedger,
  caller: ScriptCaller,
  keyOf: (key: string) => string,
): ScriptCall {
  const positions = new Map<string, string>();
  const position = (key: string) => {
    const existing = positions.get(key);
    if (existing !== undefined) return existing;
    const next = String(positions.size + 1);
    positions.set(key, next);
    return next;
  };
  const args = [...headOf(caller, ledger.epoch), String(batch.settlements.size), String(batch.reports.length)];
  for (const [key, { written, returned }] of batch.settlements)
    args.push(position(key), String(ledger.claimed(key, 0)), String(written), String(returned));
  for (const { claim, sent, known } of batch.reports) {
    const { written = 0, returned = 0 } = batch.settlements.get(claim.key) ?? {};
    const leased = ledger.claimed(claim.key, written + returned);
    args.push(position(claim.key), String(leased), claimText(claim), String(sent), known.join(","));
    args.push(String(claim.knownAgoUs ?? -1));
  }
  for (const { request, onReply } of batch.pending.values()) {
    args.push(String(request.claims.length), String(request.least), String(request.most), String(onReply.length));
    args.push(request.wantsUse ? "1" : "0");
    for (const claim of request.claims) {
      const { written = 0, returned = 0 } = batch.settlements.get(claim.key) ?? {};
      args.push(position(claim.key), String(ledger.claimed(claim.key, written + returned)), claimText(claim));
      args.push(String(claim.knownAgoUs ?? -1));
    }
  }
  return { keys: Array.from(positions.keys(), keyOf), args };
}

/** Adds the process to the list of processes that use the store; a lease of 0 removes it. */
export function presenceCallOf(caller: ScriptCaller, key: string): ScriptCall {
  return { keys: [key], args: [...headOf(caller, 0), "-1"] };
}

/** The server's time and the rest of the reply; `rest` is undefined for a call that came too late and had no effect. */
export function readReply(reply: unknown): { readonly serverUs: number; readonly rest: readonly number[] | undefined } {
  const [serverUs, state, ...rest] = Array.isArray(reply) ? (reply as readonly unknown[]).map(Number) : [];
  if (serverUs === undefined || !Number.isSafeInteger(serverUs))
    throw new TypeError("unexpected reply of the Lua script");
  return { serverUs, rest: state === 0 ? rest : undefined };
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
    const granted = Array.from({ length: first }, next);
    const isRefused = granted.length < onReply.length;
    const waitMs = isRefused ? next() / 1000 : 0;
    const key = isRefused ? (request.claims[next() - 1]?.key ?? "") : "";
    const isStricter = next() === 1;
    const use = request.wantsUse ? { use: request.claims.map(({ windows }) => windows.map(next)) } : {};
    return onReply.map((_, index): LeaseReply => {
      const units = granted[index];
      return units === undefined
        ? { kind: "wait", waitMs, key, isStricter, ...use }
        : { kind: "granted", units, isStricter, ...use };
    });
  });
}

function headOf({ process, leaseUs, notAfterUs, timeUs }: ScriptCaller, epoch: number): string[] {
  return [process, String(leaseUs), String(epoch), String(notAfterUs), timeUs === undefined ? "" : String(timeUs)];
}
