import { commonName, partitionName } from "../../src/policy/partition-name.ts";
import type { ResponseFact, SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { type Law, type LawMaker, ms, turnUs } from "./law.ts";

interface ObservedCooldown {
  readonly sinceUs: number;
  readonly untilUs: number;
  readonly why: string;
}

/** Faults that delay records between processes, and the sending of granted requests. */
const DISRUPTIVE_FAULTS: ReadonlySet<string> = new Set([
  "stall",
  "suspend",
  "kill",
  "store-away",
  "store-restart",
  "store-loss",
]);

/**
 * B5: no request is sent to a host in cooldown (Retry-After or an operator) until the cooldown ends or an operator
 * closes it. The process that got the response knows it at once; processes with a shared store know it soon after,
 * unless a process or the store stalled.
 */
export const noSendInCooldown: LawMaker = {
  title: "no send in a cooldown",
  make: (plan, occasion) => new NoSendInCooldown(plan, occasion),
};

class NoSendInCooldown implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  /**
   * Keyed by process and host, and by host alone for all processes that share a store. Partitions may have their own;
   * an operator's order for the host applies to all of them, and has a key of its own.
   */
  readonly #cooldowns = new Map<string, ObservedCooldown>();
  readonly #isShared: boolean;
  readonly #propagationUs: number;
  /**
   * The store dates a cooldown when its record arrives. Of two that end at nearly the same time it may keep either, and
   * the process that has the earlier one does not learn of the other. An order to close ends a cooldown that begins at
   * nearly the same time in another process.
   */
  readonly #datingErrorUs: number;
  /** The last order to close each host, for the cooldowns of the other processes. */
  readonly #closes = new Map<string, { readonly process: number; readonly atUs: number }>();

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    const { store, faults } = plan;
    this.#isShared = store !== undefined && !faults.some(({ kind }) => DISRUPTIVE_FAULTS.has(kind));
    this.#datingErrorUs = 1000 * ((store?.delayMs ?? 0) + (store?.jitterMs ?? 0));
    // Writing and reading a record takes at most four one-way trips; a request granted before may still be connecting.
    this.#propagationUs = 1_000_000 + 4000 * ((store?.delayMs ?? 0) + (store?.jitterMs ?? 0));
  }

  check(fact: SimFact): string | undefined {
    if (fact.kind === "head") this.#recordRetryAfter(fact);
    if (fact.kind === "fault" && fact.fault.kind === "operator") {
      const { process, host, openS } = fact.fault;
      if (openS === 0) {
        this.#clearCooldown(process, host);
        this.#closes.set(host, { process, atUs: fact.atUs });
      } else
        this.#setCooldown(process, orderKey(host), {
          sinceUs: fact.atUs,
          untilUs: fact.atUs + openS * 1e6,
          why: "opened by an operator",
        });
    }
    if (fact.kind === "call") {
      const cooldown = this.#cooldowns.get(`${fact.process} ${fact.call.host}`);
      if (cooldown !== undefined && fact.atUs < cooldown.untilUs) this.#occasion();
    }
    return fact.kind === "dispatched" ? this.#sent(fact.request, fact.atUs) : undefined;
  }

  #recordRetryAfter({ request, status, retryAfterMs, atUs }: ResponseFact): void {
    if (retryAfterMs === undefined || !(status === 429 || status === 503 || status === 403)) return;
    const close = this.#closes.get(request.host);
    const isOfPeer = this.#plan.store !== undefined && close !== undefined && close.process !== request.process;
    if (isOfPeer && atUs <= close.atUs + this.#datingErrorUs) return;
    const cappedMs = Math.min(retryAfterMs, this.#plan.breakers.retryAfterCapS * 1000);
    const why = `Retry-After ${cappedMs} ms`;
    this.#setCooldown(request.process, request.breakerUnit, { sinceUs: atUs, untilUs: atUs + cappedMs * 1000, why });
  }

  /** Keeps the later end. */
  #setCooldown(process: number, host: string, cooldown: ObservedCooldown): void {
    for (const key of [`${process} ${host}`, host]) {
      const known = this.#cooldowns.get(key);
      if (known === undefined || known.untilUs < cooldown.untilUs) this.#cooldowns.set(key, cooldown);
    }
  }

  /** In this process, and with a store in all processes. */
  #clearCooldown(process: number, host: string): void {
    for (const key of this.#cooldowns.keys()) {
      const [owner = "", own] = key.split(" ");
      const isElsewhere = own !== undefined && owner !== `${process}` && this.#plan.store === undefined;
      if (!isElsewhere && commonName(own ?? owner) === host) this.#cooldowns.delete(key);
    }
  }

  #sent(request: WireRequest, atUs: number): string | undefined {
    const { breakerUnit, host } = request;
    return this.#check(request, breakerUnit, atUs) ?? this.#check(request, orderKey(host), atUs);
  }

  #check({ process, id }: WireRequest, host: string, atUs: number): string | undefined {
    const shared = this.#isShared ? this.#cooldowns.get(host) : undefined;
    const isKnown = shared !== undefined && atUs >= shared.sinceUs + this.#propagationUs;
    const own = this.#cooldowns.get(`${process} ${host}`);
    // A request that was granted in the same turn, before the response with the Retry-After, is on its way.
    const isOwn = own !== undefined && atUs > own.sinceUs + turnUs(this.#plan, process) && atUs < own.untilUs;
    const isOfPeer = isKnown && atUs < shared.untilUs - this.#datingErrorUs;
    const cooldown = isOwn ? own : isOfPeer ? shared : undefined;
    if (cooldown === undefined) return undefined;
    this.#occasion();
    return `request ${id} of process ${process} was sent to ${host} ${ms(cooldown.untilUs - atUs)} too early: ${cooldown.why}`;
  }
}

/** As the name of a partition, so that an order is cleared with everything else of the host. */
function orderKey(host: string): string {
  return partitionName(host, "an operator's order");
}
