import { withoutCredentials } from "../core/text/passwords.ts";
import type { LoadedPolicy } from "./load.ts";
import { isLimitPart, type LimitPart, unknownRoleMessage } from "./roles.ts";
import { serviceOfName } from "./service-name.ts";

/** The parts of a target: `service:arxiv:landing`, `resolver:crossref`, `api.example.org:8443:metadata`, a URL. */
export interface TargetText {
  readonly prefix: "service" | "resolver" | "host" | undefined;
  readonly name: string;
  /** `total` only for orders that change limits. */
  readonly role: LimitPart | undefined;
}

/**
 * The role follows the last colon; an earlier colon belongs to the port. Throws a RangeError for a word that is no role,
 * as in `api.example.org:owner`, and for a partition of a host, as in `api.example.org#0123456789abcdef`.
 */
export function parseTargetText(text: string): TargetText {
  const [, prefix, rest = text] = /^(service|resolver|host)[: ](.+)$/i.exec(text) ?? [];
  const colon = rest.lastIndexOf(":");
  const last = rest.slice(colon + 1).toLowerCase();
  const hasRole = colon > 0 && isLimitPart(last) && (last !== "total" || !hasOtherColon(rest));
  if (colon > 0 && !hasRole && /^[a-z_]+$/.test(last) && !hasOtherColon(rest)) throw unknownRole(text, last);
  const parts = {
    prefix: prefix?.toLowerCase() as TargetText["prefix"],
    name: hasRole ? rest.slice(0, colon) : rest,
    role: hasRole ? last : undefined,
  };
  checkNoPartition(parts);
  return parts;
}

/** As a URL, the name of a partition would be that of its host, because `#` begins the fragment. */
function checkNoPartition({ prefix, name }: TargetText): void {
  if (prefix === "service" || prefix === "resolver" || !name.includes("#") || name.includes("://")) return;
  const [host = ""] = withoutCredentials(name).split("#", 1);
  throw new RangeError(
    `unknown target ${JSON.stringify(withoutCredentials(name))}: a partition takes no orders of its own; ` +
      `an order for ${host} applies to all its partitions`,
  );
}

/** Whether its colons may be those of a path, as in `api.example.org/x:y`, or of an IPv6 address without brackets. */
function hasOtherColon(text: string): boolean {
  return text.includes("/") || /^[\da-f:.]+$/i.test(text);
}

function unknownRole(text: string, word: string): RangeError {
  const hint =
    word === "max_concurrent"
      ? "; max_concurrent is an option of orders, not a target"
      : ', "total" for the limits of all roles together, or no role for each of them';
  return new RangeError(`${JSON.stringify(text)}: ${unknownRoleMessage(word)}${hint}`);
}

/** Why a service has no circuit, cooldown or hold of its own; undefined for a service that has, and for a host. */
export function whyNoCircuit({ ratelimits }: LoadedPolicy, unit: string): string | undefined {
  const service = serviceOfName(unit);
  if (service === undefined || ratelimits.options.services?.[service]?.per_host !== true) return undefined;
  return `service ${service} has per_host: each of its hosts has a circuit, cooldowns and holds of its own; name the host`;
}

/** The hosts and services whose circuits and cooldowns decide about requests to a host, or to a path of it. */
export interface HostOwners {
  /** The host itself; for a path that belongs to a service, the service, because the host has no circuit there. */
  readonly unit: string;
  /** All but `unit`. */
  readonly others: readonly string[];
  /** The one of them that has the circuits. */
  readonly circuitOwner: string;
}

export function ownersOfHost({ ratelimits, breakers }: LoadedPolicy, host: string, path?: string): HostOwners {
  const { circuit, cooldown } = breakers.resolved.route(host, path);
  const isPart = path !== undefined && ratelimits.resolved.routing.find(host, path).memberPath !== "";
  const unit = isPart ? circuit : host;
  return { unit, others: [...new Set([circuit, cooldown])].filter(name => name !== unit), circuitOwner: circuit };
}
