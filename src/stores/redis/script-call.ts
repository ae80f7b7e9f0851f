/** A batch as the script's arguments, and the script's reply as answers. `redis-script.ts` says what they look like. */

import type { Answer } from "../store.ts";
import { claimText, type RedisBatch } from "./redis-batch.ts";
import type { RedisLedger } from "./redis-ledger.ts";

/** Who calls, and how long the call is good for. */
export interface Caller {
  readonly process: string;
  readonly leaseUs: number;
  /** By the server's clock; 0 when that is not known yet. */
  readonly notAfterUs: number;
  /** In place of the server's clock. For tests alone. */
  readonly timeUs?: number | undefined;
}

export interface Call {
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

export function callOf(batch: RedisBatch, ledger: RedisLedger, caller: Caller, keyOf: (key: string) => string): Call {
  const positions = new Map<string, string>();
  const position = (key: string) => {
    const known = positions.get(key);
    if (known !== undefined) return known;
    const next = String(positions.size + 1);
    positions.set(key, next);
    return next;
  };
  const args = [...headOf(caller, ledger.epoch), String(batch.settlements.size)];
  for (const [key, { written, returned }] of batch.settlements)
    args.push(position(key), String(ledger.claimed(key, 0)), String(written), String(returned));
  for (const { ask, hear } of batch.questions.values()) {
    args.push(String(ask.claims.length), String(ask.least), String(ask.most), String(hear.length));
    for (const claim of ask.claims) {
      const { written = 0, returned = 0 } = batch.settlements.get(claim.key) ?? {};
      args.push(position(claim.key), String(ledger.claimed(claim.key, written + returned)), claimText(claim));
    }
  }
  return { keys: Array.from(positions.keys(), keyOf), args };
}

/** Signs the list of those who use the store; a lease of 0 takes the name off it. */
export function presenceOf(caller: Caller, key: string): Call {
  return { keys: [key], args: [...headOf(caller, 0), "-1"] };
}

/** The server's time, and what follows it; undefined for a call that came too late and did nothing. */
export function readReply(reply: unknown): { readonly serverUs: number; readonly rest: readonly number[] | undefined } {
  const [serverUs, state, ...rest] = Array.isArray(reply) ? (reply as readonly unknown[]).map(Number) : [];
  if (serverUs === undefined || !Number.isSafeInteger(serverUs)) throw new TypeError("not an answer of the script");
  return { serverUs, rest: state === 0 ? rest : undefined };
}

/** For each question, what each of those who asked it is told. */
export function answersOf(batch: RedisBatch, numbers: readonly number[]): readonly (readonly Answer[])[] {
  let at = 0;
  const next = () => {
    const value = numbers[at];
    if (value === undefined) throw new TypeError("the script's answer is too short");
    at += 1;
    return value;
  };
  return Array.from(batch.questions.values(), ({ ask, hear }) => {
    const given = Array.from({ length: next() }, next);
    const isRefused = given.length < hear.length;
    const waitMs = isRefused ? next() / 1000 : 0;
    const key = isRefused ? (ask.claims[next() - 1]?.key ?? "") : "";
    const isStricter = next() === 1;
    return hear.map((_, index): Answer => {
      const units = given[index];
      return units === undefined ? { kind: "wait", waitMs, key, isStricter } : { kind: "given", units, isStricter };
    });
  });
}

function headOf({ process, leaseUs, notAfterUs, timeUs }: Caller, epoch: number): string[] {
  return [process, String(leaseUs), String(epoch), String(notAfterUs), timeUs === undefined ? "" : String(timeUs)];
}
