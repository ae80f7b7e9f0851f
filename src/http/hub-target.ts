import { type BreakerTarget, circuitTarget, type OrderTarget, type ResolvedTarget } from "../breaker/orders.ts";
import { ownersOfHost, parseTargetText, whyNoCircuit } from "../policy/breaker-target.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { unknownServiceMessage } from "../policy/overrides.ts";
import { isServiceName, serviceName } from "../policy/service-name.ts";
import { policyTarget } from "../policy/target.ts";
import { splitAtPath } from "../policy/url-path.ts";

/**
 * The meaning of a target in `hub.breakers` and `hub.limits`: a host, `<host>:<role>`, `<host>:total`, a URL,
 * `service:<name>` or `resolver:<name>`. Another text is a RangeError, and so is an unknown service.
 */
export function hubTargetOf(policy: LoadedPolicy, text: string): ResolvedTarget {
  const { prefix, name, role } = parseTargetText(text);
  if (prefix === "resolver") {
    if (role !== undefined)
      throw new RangeError(`a resolver has one circuit for all roles, got ${JSON.stringify(text)}`);
    return withOwners(policy, { resolver: name });
  }
  if (prefix === "service") {
    const services = policy.ratelimits.options.services ?? {};
    if (!Object.hasOwn(services, name)) throw new RangeError(unknownServiceMessage(name, Object.keys(services)));
    return withOwners(policy, { unit: serviceName(name), role });
  }
  const { host, path } = policyTarget(policy, name);
  return withOwners(policy, { unit: host, role }, path);
}

/** As `hubTargetOf`, but a total and a service with `per_host` are RangeErrors too: they have no circuit. */
export function circuitTargetOf(policy: LoadedPolicy, text: string): ResolvedTarget<BreakerTarget> {
  return withCircuit(policy, hubTargetOf(policy, text));
}

/** As `circuitTargetOf`, for a target whose host is named as in snapshots; a path may follow it. */
export function circuitOwnersOf(policy: LoadedPolicy, target: OrderTarget): ResolvedTarget<BreakerTarget> {
  if ("resolver" in target) return withCircuit(policy, withOwners(policy, target));
  const [host, path] = splitAtPath(target.unit);
  return withCircuit(policy, withOwners(policy, { ...target, unit: host }, path));
}

function withOwners(policy: LoadedPolicy, target: OrderTarget, path?: string): ResolvedTarget {
  if ("resolver" in target) return { target, others: [], circuitOwner: undefined };
  if (isServiceName(target.unit)) return { target, others: [], circuitOwner: target.unit };
  const { unit, others, circuitOwner } = ownersOfHost(policy, target.unit, path);
  return { target: { ...target, unit }, others, circuitOwner };
}

function withCircuit(policy: LoadedPolicy, found: ResolvedTarget): ResolvedTarget<BreakerTarget> {
  const problem = "unit" in found.target ? whyNoCircuit(policy, found.target.unit) : undefined;
  if (problem !== undefined) throw new RangeError(problem);
  return { ...found, target: circuitTarget(found.target) };
}
