import { ConfigError } from "../errors.ts";
import { type Member, memberList, memberText } from "./member.ts";
import { ProblemList } from "./problem-list.ts";
import type { ParsedRatelimits } from "./ratelimit-schema.ts";

/**
 * The members of each service. Throws a ConfigError if a service has no members, if a service with `per_host` has some,
 * or if two services have the same member.
 */
export function serviceMembers({ services }: ParsedRatelimits, where: string): ReadonlyMap<string, readonly Member[]> {
  const list = new ProblemList();
  const serviceOf = new Map<string, string>();
  const all = new Map<string, readonly Member[]>();
  for (const [service, { members, per_host }] of Object.entries(services)) {
    const addProblem = (message: string) => list.add(() => ({ where, path: `services.${service}.members`, message }));
    const listed = memberList(members);
    if (per_host && listed.length > 0)
      addProblem("members is not allowed together with per_host: calls select this service with the option service");
    if (!per_host && listed.length === 0) addProblem("members is missing: list hosts, *.suffix, or host/path");
    const own = new Map<string, Member>();
    for (const member of listed) {
      const text = memberText(member);
      const other = serviceOf.get(text);
      if (other !== undefined && other !== service)
        addProblem(`${text} is already a member of service ${other}; a host or path can be in one service only`);
      serviceOf.set(text, service);
      own.set(text, member);
    }
    all.set(service, [...own.values()]);
  }
  if (list.problems.length > 0) throw new ConfigError(list.problems);
  return all;
}
