import { ConfigError, type ConfigProblem } from "../errors.ts";
import { type Member, memberList, memberText } from "./member.ts";
import type { ParsedRatelimits } from "./ratelimit-schema.ts";

/** The members of each service. Throws a ConfigError for a service without members, and for a member of two services. */
export function serviceMembers({ services }: ParsedRatelimits, where: string): ReadonlyMap<string, readonly Member[]> {
  const problems: ConfigProblem[] = [];
  const serviceOf = new Map<string, string>();
  const all = new Map<string, readonly Member[]>();
  for (const [service, { members, per_host }] of Object.entries(services)) {
    const fail = (message: string) => problems.push({ where, path: `services.${service}.members`, message });
    const list = memberList(members);
    if (per_host && list.length > 0)
      fail("members is not allowed together with per_host: calls select this service with the option service");
    if (!per_host && list.length === 0) fail("members is missing: list hosts, *.suffix, or host/path");
    const own = new Map<string, Member>();
    for (const member of list) {
      const text = memberText(member);
      const other = serviceOf.get(text);
      if (other !== undefined && other !== service)
        fail(`${text} is already a member of service ${other}; a host or path can be in one service only`);
      serviceOf.set(text, service);
      own.set(text, member);
    }
    all.set(service, [...own.values()]);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return all;
}
