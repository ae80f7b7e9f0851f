import { type BreakerTarget, circuitTarget, type OrderTarget } from "../breaker/orders.ts";
import { parseTargetText, unitsOfHost, whyNoCircuit } from "../policy/breaker-target.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { unknownServiceMessage } from "../policy/overrides.ts";
import { serviceName } from "../policy/service-name.ts";
import { policyTarget } from "../policy/target.ts";

/** The meaning of a target in `hub.breakers` and `hub.limits`. */
export interface HubTarget {
  /** The host, service or resolver itself. */
  readonly target: OrderTarget;
  /** The other hosts and services whose circuits and cooldowns decide about its requests. */
  readonly others: readonly BreakerTarget[];
}

/**
 * Reads a host, `<host>:<role>`, `<host>:total`, a URL, `service:<name>` or `resolver:<name>`. Another text is a
 * RangeError, and so is an unknown service.
 */
export function hubTargetOf(policy: LoadedPolicy, text: string): HubTarget {
  const { prefix, name, role } = parseTargetText(text);
  if (prefix === "resolver") {
    if (role !== undefined)
      throw new RangeError(`a resolver has one circuit for all roles, got ${JSON.stringify(text)}`);
    return { target: { resolver: name }, others: [] };
  }
  if (prefix === "service") {
    const services = policy.ratelimits.options.services ?? {};
    if (!Object.hasOwn(services, name)) throw new RangeError(unknownServiceMessage(name, Object.keys(services)));
    return { target: { unit: serviceName(name), role }, others: [] };
  }
  const { host, path } = policyTarget(policy, name);
  const [unit = host, ...others] = unitsOfHost(policy, host, path);
  return { target: { unit, role }, others: others.map(other => ({ unit: other })) };
}

/** A target of orders about circuits, cooldowns and holds. */
export interface HubCircuitTarget extends HubTarget {
  readonly target: BreakerTarget;
}

/** As `hubTargetOf`, but a total and a service with `per_host` are RangeErrors too: they have no circuit. */
export function circuitTargetOf(policy: LoadedPolicy, text: string): HubCircuitTarget {
  const found = hubTargetOf(policy, text);
  const problem = "unit" in found.target ? whyNoCircuit(policy, found.target.unit) : undefined;
  if (problem !== undefined) throw new RangeError(problem);
  return { ...found, target: circuitTarget(found.target) };
}
