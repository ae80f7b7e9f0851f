import type { OrderTarget, ResolvedTarget } from "../../breaker/orders.ts";
import { nearest } from "../../core/text/nearest.ts";
import { quote } from "../../core/text/quote.ts";
import { ownersOfHost, parseTargetText, type TargetText } from "../../policy/breaker-target.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { type LimitPart, ROLES } from "../../policy/roles.ts";
import { serviceName } from "../../policy/service-name.ts";
import { policyTarget } from "../../policy/target.ts";
import { usageError } from "../usage-error.ts";
import type { KnownTargets } from "./known-targets.ts";

/**
 * The host, service or resolver that `text` names: `api.example.org`, `api.example.org:8443`, `api.example.org:landing`,
 * a URL, `service:arxiv`, `resolver:crossref`, or the bare name of a service or resolver. Throws a ConfigError with a
 * suggestion for a name that neither a policy nor a running process knows.
 */
export function resolveTarget(text: string, known: KnownTargets, policies: readonly LoadedPolicy[]): ResolvedTarget {
  const { prefix, name, role } = partsOf(text);
  if (prefix === "resolver") return resolverTarget(text, name, role, known);
  const service = sameName(known.services, name);
  if (prefix === "service") {
    if (service === undefined) throw unknownTarget(text, known);
    return serviceTarget(service, role);
  }
  const host =
    prefix === "host" || !isBareWord(name) || known.hasHost(name) ? hostTarget(name, role, known, policies) : undefined;
  if (host !== undefined) return host;
  if (prefix === "host") throw unknownTarget(text, known);
  const resolver = sameName(known.resolvers, name);
  if (service !== undefined && resolver !== undefined)
    throw usageError(
      "<target>",
      `${quote(name)} is a service and a resolver; write service:${service} or resolver:${resolver}`,
    );
  if (service !== undefined) return serviceTarget(service, role);
  if (resolver !== undefined) return resolverTarget(text, resolver, role, known);
  throw unknownTarget(text, known);
}

/** The name of a target in messages: `api.example.org (landing)`, `service arxiv`, `resolver crossref`. */
export function targetName(target: OrderTarget): string {
  if ("resolver" in target) return `resolver ${target.resolver}`;
  return target.role === undefined ? target.unit : `${target.unit} (${target.role})`;
}

/** The target as the command line takes it. */
export function targetArgument(kind: "host" | "resolver", name: string): string {
  return kind === "resolver" ? `resolver:${name}` : name.replace(/^service /, "service:");
}

function partsOf(text: string): TargetText {
  try {
    return parseTargetText(text);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw usageError("<target>", error.message);
  }
}

function serviceTarget(service: string, role: LimitPart | undefined): ResolvedTarget {
  const unit = serviceName(service);
  return { target: { unit, role }, others: [], circuitOwner: unit };
}

function resolverTarget(text: string, name: string, role: LimitPart | undefined, known: KnownTargets): ResolvedTarget {
  const resolver = sameName(known.resolvers, name);
  if (resolver === undefined) throw unknownTarget(text, known);
  if (role !== undefined)
    throw usageError("<target>", `a resolver has one circuit for all roles; write resolver:${resolver}`);
  return { target: { resolver }, others: [], circuitOwner: undefined };
}

/** Undefined for a host that is not known. Throws a ConfigError for a text that is no host. */
function hostTarget(
  name: string,
  role: LimitPart | undefined,
  known: KnownTargets,
  policies: readonly LoadedPolicy[],
): ResolvedTarget | undefined {
  try {
    for (const policy of policies) {
      const { host, path } = policyTarget(policy, name);
      const withPort = hostWithPort(name, host);
      const unit = [withPort, host].find(candidate => candidate !== undefined && known.hasHost(candidate));
      if (unit === undefined) continue;
      const owners = ownersOfHost(policy, unit, path);
      return { target: { unit: owners.unit, role }, others: owners.others, circuitOwner: owners.circuitOwner };
    }
    const [policy] = policies;
    // The processes have called hosts that they do not list, and this may be one of them.
    if (policy === undefined || known.isComplete) return undefined;
    const { host } = policyTarget(policy, name);
    return { target: { unit: host, role }, others: [], circuitOwner: host };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw usageError("<target>", error.message);
  }
}

/** `host:port`, if the text has a port that the policy does not name. */
function hostWithPort(text: string, host: string): string | undefined {
  const port = URL.parse(text.includes("://") ? text : `http://${text}`)?.port ?? "";
  return port === "" || host.endsWith(`:${port}`) ? undefined : `${host}:${port}`;
}

/** A word that can be the name of a service or resolver, and is probably not a host. */
function isBareWord(name: string): boolean {
  return /^[\w-]+$/.test(name);
}

function sameName(names: ReadonlySet<string>, name: string): string | undefined {
  return names.has(name) ? name : [...names].find(other => other.toLowerCase() === name.toLowerCase());
}

function unknownTarget(text: string, known: KnownTargets): Error {
  const { name, role } = parseTargetText(text);
  const suffix = role === undefined ? "" : `:${role}`;
  const candidates = new Map([
    // A resolver has one circuit for all roles.
    ...[...known.resolvers].map(other => [other, `resolver:${other}`] as const),
    ...[...known.services].map(other => [other, `service:${other}${suffix}`] as const),
    ...[...known.hosts].map(other => [other, `${other}${suffix}`] as const),
  ]);
  const suggested = candidates.get(nearest(name, candidates.keys()) ?? "");
  const hint =
    suggested === undefined
      ? `expected a host, <host>:<role> (${ROLES.join(", ")}), service:<name> or resolver:<name>`
      : `did you mean ${suggested}?`;
  return usageError(
    "<target>",
    `unknown target ${quote(text)}: no running process has called it, and the policy does not list it; ${hint}`,
  );
}
