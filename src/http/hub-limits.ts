import type { Gate } from "../gate/gate.ts";
import type { KeySnapshot } from "../limiter/key-snapshot.ts";
import { parseTargetText } from "../policy/breaker-target.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { ROLES } from "../policy/roles.ts";
import { policyTarget } from "../policy/target.ts";

/** The rate limits of a hub. */
export interface HubLimits {
  /**
   * Sends nothing to a host for a while: its calls wait, or are refused if they may not wait that long. Applies to this
   * hub alone; `hub.breakers.open` stops a host in all processes. Of two holds the later end counts.
   * @param target a host, `<host>:<role>` for one role, or a URL. Another text is a RangeError
   * @param seconds greater than 0
   */
  hold(target: string, seconds: number): void;
  /** The state of every key (a host or service, and a role) that has been used or still has usage in its windows. */
  list(): readonly KeySnapshot[];
}

/** The implementation of `HubLimits`, whose members are documented there. */
export class GateHubLimits implements HubLimits {
  readonly #gate: Gate;
  readonly #policy: () => LoadedPolicy;

  constructor(gate: Gate, policy: () => LoadedPolicy) {
    this.#gate = gate;
    this.#policy = policy;
  }

  hold(text: string, seconds: number): void {
    if (!(seconds > 0 && seconds < Number.POSITIVE_INFINITY))
      throw new RangeError(`seconds must be a finite number greater than 0, got ${seconds}`);
    const { prefix, name, role } = parseTargetText(text);
    if (prefix === "service" || prefix === "resolver")
      throw new RangeError(`expected a host, <host>:<role> or a URL, got ${JSON.stringify(text)}`);
    const { host, path } = policyTarget(this.#policy(), name);
    for (const each of role === undefined ? ROLES : [role]) this.#gate.hold(host, each, seconds * 1000, path);
  }

  list(): readonly KeySnapshot[] {
    return this.#gate.keySnapshots();
  }
}
