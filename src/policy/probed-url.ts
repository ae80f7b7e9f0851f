import type { Member } from "./member.ts";

/** A request that stands for all requests of one host, suffix or path. */
export interface ProbedUrl {
  readonly host: string;
  readonly path: string;
}

/** A host that no policy lists. */
export const UNLISTED: ProbedUrl = { host: "unlisted.invalid", path: "" };
/** The first label of an invented host below a suffix that the policy lists. */
const BELOW_SUFFIX = "any-portal.";

/** A request that belongs to a member. */
export function probeOf({ host, isSuffix, path }: Member): ProbedUrl {
  return { host: isSuffix ? `${BELOW_SUFFIX}${host}` : host, path };
}

/** Replaces an invented host in the name of a host or budget, so that no message shows it. */
export function withoutProbes(name: string): string {
  if (name === UNLISTED.host) return "defaults";
  return name.startsWith(BELOW_SUFFIX) ? `*.${name.slice(BELOW_SUFFIX.length)}` : name;
}

/** The requests that a probe stands for. */
export function probeText({ host, path }: ProbedUrl): string {
  return host === UNLISTED.host ? "hosts that are not listed" : `${withoutProbes(host)}${path}`;
}
