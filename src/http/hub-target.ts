import { type BreakerTarget, circuitTarget, type ResolvedTarget } from "../breaker/orders.ts";
import { ownersOfHost, parseTargetText, whyNoCircuit } from "../policy/breaker-target.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { unknownServiceMessage } from "../policy/overrides.ts";
import { serviceName } from "../policy/service-name.ts";
import { policyTarget } from "../policy/target.ts";

/**
 * The meaning of a target in `hub.breakers` and `hub.limits`: a host, `<host>:<role>`, `<host>:total`, a URL,
 * `service:<name>` or `resolver:<name>`. Another text is a RangeError, and so is an unknown service.
 */
export function hubTargetOf(policy: LoadedPolicy, text: string): ResolvedTarget {
  const { prefix, name, role } = parseTargetText(text);
  if (prefix === "resolver") {
    if (role !== undefined)
      throw new RangeError(`a resolver has one circuit for all roles, got ${JSON.stringify(text)}`);
    return { target: { resolver: name }, others: [], circuitOwner: undefined };
  }
  if (prefix === "service") {
    const services = policy.ratelimits.options.services ?? {};
    if (!Object.hasOwn(services, name)) throw new RangeError(unknownServiceMessage(name, Object.keys(services)));
    const unit = serviceName(name);
    return { target: { unit, role }, others: [], circuitOwner: unit };
  }
  const { host, path } = policyTarget(policy, name);
  const { unit, others, circuitOwner } = ownersOfHost(policy, host, path);
  return { target: { unit, role }, others, circuitOwner };
}

/** As `hubTargetOf`, but a total and a service with `per_host` are RangeErrors too: they have no circuit. */
export function circuitTargetOf(policy: LoadedPolicy, text: string): ResolvedTarget<BreakerTarget> {
  const found = hubTargetOf(policy, text);
  const problem = "unit" in found.target ? whyNoCircuit(policy, found.target.unit) : undefined;
  if (problem !== undefined) throw new RangeError(problem);
  return { ...found, target: circuitTarget(found.target) };
}
