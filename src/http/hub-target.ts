import type { BreakerTarget } from "../breaker/orders.ts";
import { parseTargetText, unitsOfHost } from "../policy/breaker-target.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { serviceName } from "../policy/service-name.ts";
import { policyTarget } from "../policy/target.ts";

/** The meaning of a target in `hub.breakers` and `hub.limits`. */
export interface HubTarget {
  /** The host, service or resolver itself. */
  readonly target: BreakerTarget;
  /** The owners of other circuits and cooldowns that decide about its requests. */
  readonly others: readonly BreakerTarget[];
}

/** Reads a host, `<host>:<role>`, a URL, `service:<name>` or `resolver:<name>`. Another text is a RangeError. */
export function hubTargetOf(policy: LoadedPolicy, text: string): HubTarget {
  const { prefix, name, role } = parseTargetText(text);
  if (prefix === "resolver") {
    if (role !== undefined)
      throw new RangeError(`a resolver has one circuit for all roles, got ${JSON.stringify(text)}`);
    return { target: { resolver: name }, others: [] };
  }
  if (prefix === "service") return { target: { unit: serviceName(name), role }, others: [] };
  const { host, path } = policyTarget(policy, name);
  const [unit = host, ...others] = unitsOfHost(policy, host, path);
  return { target: { unit, role }, others: others.map(other => ({ unit: other })) };
}
