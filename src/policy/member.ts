import { canonicalHost } from "../core/text/host.ts";
import { normalizedPath } from "./url-path.ts";

/** A part of the web that belongs to a service: a host, all hosts below a name, or a path of either. */
export interface Member {
  /** The canonical host; for a suffix, the name after `*.`. */
  readonly host: string;
  /** True for `*.example.org`: every host below example.org, and not example.org itself. */
  readonly isSuffix: boolean;
  /** The normalized path; empty for all paths. */
  readonly path: string;
  /** The path as the policy writes it. Requests in another spelling belong to the member, but get no key of its service. */
  readonly writtenPath: string;
}

const SUFFIX = "*.";

/** Parses `host`, `*.suffix`, `host/path` or `*.suffix/path`. Throws a RangeError that names the text. */
export function parseMember(text: string): Member {
  const slash = text.indexOf("/");
  const name = slash < 0 ? text : text.slice(0, slash);
  const isSuffix = name.startsWith(SUFFIX);
  const host = canonicalHost(isSuffix ? name.slice(SUFFIX.length) : name);
  if (isSuffix && /[\]:]|^[\d.]+$/.test(host))
    throw new RangeError(`${JSON.stringify(text)}: after "*." a name such as example.org is expected, without a port`);
  const path = slash < 0 ? "" : normalizedPath(text.slice(slash));
  return { host, isSuffix, path, writtenPath: path === "" ? "" : text.slice(slash) };
}

/** The member as policy files write it; equal members have equal texts. */
export function memberText({ host, isSuffix, path }: Member): string {
  return `${isSuffix ? SUFFIX : ""}${host}${path}`;
}

/** The members of a service in a policy: a list, or a map with the list under `replace`. */
export function memberList<Item>(
  members: readonly Item[] | { readonly replace: readonly Item[] } | undefined,
): readonly Item[] {
  if (members === undefined) return [];
  return "replace" in members ? members.replace : members;
}
