import type { LimiterEmitter } from "../limiter/limiter-emitter.ts";
import type { Queues } from "../limiter/queues.ts";
import type { RoleBudgets } from "../limiter/role-budgets.ts";
import type { Peers } from "../sharing/peers.ts";
import { awayText, backText, type StoreAway } from "../sharing/store-outage.ts";
import type { Time, Timer } from "../time/time.ts";
import { setUnreferencedTimer } from "../time/unreferenced-timer.ts";
import type { Admission } from "./admission.ts";
import type { GateQueues } from "./gate-queues.ts";

/**
 * Within this time after the store is back, every process has reached it. Each process tries the store at least every
 * 1.5 s: a try takes at most a second, and the next one follows half a second later.
 */
const SETTLING_MS = 1600;

export interface OutageLimitsDeps {
  readonly time: Time;
  readonly roleBudgets: RoleBudgets;
  readonly queues: Queues;
  readonly gateQueues: GateQueues;
  readonly peers: Peers | undefined;
  readonly admission: Admission;
  readonly emitter: LimiterEmitter;
  readonly warn: ((message: string) => void) | undefined;
  /** Serves the requests that are ready. */
  readonly serve: () => void;
}

/** The limits of this process while the shared store does not answer, and until they are complete again (law S4). */
export class OutageLimits {
  readonly #deps: OutageLimitsDeps;
  /** Since when the store of the limits, or that of the breakers, is away. */
  readonly #awaySinceUs = { limits: 0, breakers: 0 };
  /** The number of processes that the limits are divided by. */
  #sharedBy = 1;
  /** Fires when a process that has reached the store again may use the full limits. */
  #settling: Timer | undefined;

  constructor(deps: OutageLimitsDeps) {
    this.#deps = deps;
  }

  /** `shares` is "breakers" if the store shares nothing else. */
  storeAway(away: StoreAway, shares: "limits" | "breakers"): void {
    const { emitter, roleBudgets, time, warn } = this.#deps;
    const { mode = "share", processes, error } = away;
    const nowUs = time.monotonicUs();
    this.#awaySinceUs[shares] = nowUs;
    emitter.storeAway(processes, mode, error);
    warn?.(awayText(away));
    if (shares !== "limits") return;
    roleBudgets.store.isBlocking = mode !== "share";
    this.#settling?.cancel();
    if (mode === "share" || away.hasLostData) {
      this.#sharedBy = processes;
      this.#requeue(() => roleBudgets.share(processes, nowUs));
    }
    if (mode === "refuse") this.#refuseWithoutStore(away);
  }

  storeBack(shares: "limits" | "breakers"): void {
    const { emitter, roleBudgets, time, warn } = this.#deps;
    const awayMs = (time.monotonicUs() - this.#awaySinceUs[shares]) / 1000;
    emitter.storeBack(awayMs);
    warn?.(backText(awayMs));
    if (shares !== "limits") return;
    roleBudgets.store.isBlocking = false;
    if (this.#sharedBy === 1) {
      this.#useFullLimits();
      return;
    }
    // The other processes return within this time and report what they sent: until then each keeps to its share.
    this.#settling = setUnreferencedTimer(time, SETTLING_MS, () => this.#useFullLimits());
    this.#requeue(() => undefined);
  }

  /** A request waits until the full limits apply again: the program must not end before. */
  awaitFullLimits(): void {
    this.#settling?.ref?.();
  }

  #useFullLimits(): void {
    this.#settling = undefined;
    this.#sharedBy = 1;
    this.#requeue(() => this.#deps.roleBudgets.share(1));
  }

  #requeue(change: () => void): void {
    this.#deps.gateQueues.requeue(change, this.#deps.serve);
  }

  /** Refuses the requests that would wait for the store. */
  #refuseWithoutStore(away: StoreAway): void {
    const { queues, gateQueues, admission, peers, time } = this.#deps;
    for (const waiter of queues.removeAll()) {
      const { roleBudget, charge } = waiter;
      if (peers?.hasLeases(roleBudget, charge, time.monotonicUs())) gateQueues.rejoin(waiter);
      else if (waiter.end()) gateQueues.reject(waiter, admission.rejectWithoutStore(roleBudget, charge, away));
    }
  }
}
