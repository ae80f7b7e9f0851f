/** What was sent, as a plain list. It knows nothing of the limiter and counts by looking at every send. */
import type { Role } from "../../../src/policy/roles.ts";
import { budgetsOf, type PlainPolicy, type PlainWindow } from "./plain-policy.ts";

export interface Send {
  readonly us: number;
  readonly host: string;
  readonly role: Role;
  /** 0 for a debt, and for a HEAD that is not counted. */
  units: number;
  credits: number;
}

type Unit = "units" | "credits";

export class SendList {
  readonly #sends: Send[] = [];

  add(send: Send): Send {
    this.#sends.push(send);
    return send;
  }

  /** The windows that hold more than their limit just now, of those that the request is charged to. */
  exceeded(policy: PlainPolicy, { host, role, us, units, credits }: Send): readonly string[] {
    return budgetsOf(policy, host, role).flatMap(({ name, budget }) => [
      ...(units === 0 ? [] : this.#full(policy, name, "units", budget.requests, us, 0)),
      ...(credits === 0 ? [] : this.#full(policy, name, "credits", budget.credits, us, 0)),
    ]);
  }

  /** Whether every window that the request would be charged to has capacity for it just now. */
  hasCapacity(policy: PlainPolicy, { host, role, us, units, credits }: Send): boolean {
    return budgetsOf(policy, host, role).every(
      ({ name, budget }) =>
        this.#full(policy, name, "units", budget.requests, us, units).length === 0 &&
        (credits === 0 || this.#full(policy, name, "credits", budget.credits, us, credits).length === 0),
    );
  }

  /** The windows of a budget that hold more than their limit together with `more`. */
  #full(
    policy: PlainPolicy,
    name: string,
    unit: Unit,
    windows: readonly PlainWindow[],
    nowUs: number,
    more: number,
  ): readonly string[] {
    return windows.flatMap(({ limit, ms }) => {
      const spanUs = (ms + policy.guardMs) * 1000;
      let sum = more;
      for (const send of this.#sends) {
        const isInside = send.us > nowUs - spanUs && send.us <= nowUs;
        if (isInside && budgetsOf(policy, send.host, send.role).some(other => other.name === name)) sum += send[unit];
      }
      return sum > limit ? [`${sum} ${unit} in ${limit}/${ms}ms + ${policy.guardMs} ms of ${name}`] : [];
    });
  }
}
