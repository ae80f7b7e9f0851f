import { SimilarNames } from "../core/text/similar-names.ts";
import { type PolicyFinding, warning } from "./finding.ts";
import type { Assignment } from "./layer.ts";
import type { LoadedPolicy } from "./load.ts";
import { memberList, parseMember } from "./member.ts";
import { withoutPort } from "./routing.ts";
import { isShippedSource } from "./shipped-policy.ts";

/** Thousands of similar hosts are not typing errors, so only the first ones are reported. */
const SHOWN_MAX = 20;

/** A host that the user names. */
interface NamedHost {
  readonly host: string;
  readonly where: string;
  /** `hosts.<host>` or `services.<name>.members`. */
  readonly path: string;
}

/**
 * Hosts of the user that are probably misspelled, so that their settings do not reach the intended host. Such a host is
 * similar to a shipped one. In a variable or flag, it may also be similar to a host of the user's files.
 */
export function similarHostFindings(policy: LoadedPolicy): readonly PolicyFinding[] {
  const { shipped, ratelimits, breakers } = policy;
  const own = [...ownHosts(ratelimits.assignments), ...ownHosts(breakers.assignments)];
  const isShipped = (host: string) =>
    shipped?.routing.find(host).service !== undefined || shipped?.routing.isNamed(host);
  const shippedNames = new SimilarNames(shipped?.routing.hostNames() ?? []);
  const inFiles = own.filter(({ where }) => !isOverride(where)).map(({ host }) => host);
  const knownInFiles = new Set(inFiles);
  const fileNames = own.some(({ where }) => isOverride(where)) ? new SimilarNames(inFiles) : undefined;
  const findings = new Map<string, PolicyFinding>();
  for (const { host, where, path } of own) {
    if (findings.size >= SHOWN_MAX) break;
    if (isShipped(host) || findings.has(host)) continue;
    const isNew = isOverride(where) && !knownInFiles.has(host);
    const meant = shippedNames.find(host) ?? (isNew ? fileNames?.find(host) : undefined);
    if (meant === undefined) continue;
    const message = `${where}: ${path}: ${host} is a new host of your policy; did you mean ${meant}?`;
    findings.set(host, warning("similar-host", message));
  }
  return [...findings.values()];
}

/** Each host once for each entry, without its port: a port is never a typing error of a name. */
function* ownHosts(assignments: readonly Assignment[]): Generator<NamedHost> {
  for (const { path, value, where } of assignments) {
    const [section, name = "", key] = path;
    if (isShippedSource(where)) continue;
    if (section === "hosts" && (path.length === 2 || isOverride(where)))
      yield { host: withoutPort(name), where, path: `hosts.${name}` };
    if (section !== "services" || key !== "members" || !Array.isArray(value)) continue;
    for (const member of memberList(value as readonly string[])) {
      const { host, isSuffix } = parseMember(member);
      if (!isSuffix) yield { host: withoutPort(host), where, path: `services.${name}.members` };
    }
  }
}

function isOverride(where: string): boolean {
  return where.startsWith("--") || where.startsWith("DOCSTOKG_");
}
