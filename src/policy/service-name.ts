import { canonicalHost } from "../core/text/host.ts";

/** Names of budgets and circuits that belong to a service. A host contains no space, so no host has such a name. */
const PREFIX = "service ";
const TIER = " with ";

export function serviceName(service: string): string {
  return `${PREFIX}${service}`;
}

export function isServiceName(name: string): boolean {
  return name.startsWith(PREFIX);
}

/** The service of such a name; undefined when it is the name of a host. */
export function serviceOfName(name: string): string | undefined {
  return isServiceName(name) ? name.slice(PREFIX.length) : undefined;
}

/** The name of a circuit's owner, a host in any spelling or `service <name>`. Throws a RangeError for any other text. */
export function canonicalUnit(text: string): string {
  return isServiceName(text) ? text : canonicalHost(text);
}

/** The name of the budgets for requests that carry a key: providers count them apart from requests without it. */
export function tierName(name: string, tiers: readonly string[]): string {
  return tiers.length === 0 ? name : `${name}${TIER}${tiers.join(" + ")}`;
}

/** The tiers of such a name, in its order. */
export function tiersOfName(name: string): readonly string[] {
  const at = name.lastIndexOf(TIER);
  return at < 0 ? [] : name.slice(at + TIER.length).split(" + ");
}

/** The host or service of a name, without its tier. */
export function withoutTier(name: string): string {
  const at = name.lastIndexOf(TIER);
  return at < 0 ? name : name.slice(0, at);
}
