import { BreakerOpenError, type Constraint, type OpenReason } from "../errors.ts";
import type { Role } from "../policy/roles.ts";
import type { CircuitState } from "./breaker-events.ts";
import type { CircuitHolder } from "./circuit-holder.ts";
import type { HostBreaker } from "./host-breaker.ts";

/** What a half-open circuit waits for; how that ends is known any moment, not at the end of its lease. */
export const PROBE_IN_FLIGHT = "the probe under way";

/** No permit: why, and until when as far as anybody knows. A value, because a refusal should not cost a stack trace. */
export class Denial {
  readonly host: string;
  readonly role: Role;
  readonly reason: OpenReason;
  readonly state: CircuitState;
  /** The end of a cooldown or an open time; for a half-open circuit the end of the lease of the probe in the way. */
  readonly untilUs: number;
  /** What stands in the way, to wait for. */
  readonly blocker: HostBreaker | CircuitHolder;
  /** Others are being asked for leave to probe: it is not a denial until they have answered. */
  readonly probeReply: Promise<void> | undefined;
  readonly #nowUs: number;

  constructor(
    details: Omit<Denial, "isAllowed" | "error" | "constraint" | "remainingMs" | "probeReply"> & {
      readonly probeReply?: Promise<void> | undefined;
    },
    nowUs: number,
  ) {
    this.host = details.host;
    this.role = details.role;
    this.reason = details.reason;
    this.state = details.state;
    this.untilUs = details.untilUs;
    this.blocker = details.blocker;
    this.probeReply = details.probeReply;
    this.#nowUs = nowUs;
  }

  get isAllowed(): false {
    return false;
  }

  get remainingMs(): number {
    return Math.ceil((this.untilUs - this.#nowUs) / 1000);
  }

  get constraint(): Constraint {
    const limit = this.state === "half_open" ? PROBE_IN_FLIGHT : `an open circuit (${this.reason})`;
    const { resolver } = "policy" in this.blocker ? this.blocker.name : {};
    return { kind: "breaker", owner: resolver === undefined ? this.host : `resolver ${resolver}`, limit };
  }

  error(): BreakerOpenError {
    const { host, role, reason, constraint, remainingMs, blocker } = this;
    const failMax = "policy" in blocker ? blocker.policy.failMax : undefined;
    const isTrialRunning = this.state === "half_open";
    const circuit = { reason, failMax, isTrialRunning, cooldownRemainingMs: remainingMs };
    return new BreakerOpenError({ host, role, constraint, ...circuit });
  }
}
