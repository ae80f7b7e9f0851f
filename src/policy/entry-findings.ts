import { notice, type PolicyFinding, warning } from "./finding.ts";
import { isMap, standsAlone } from "./layer.ts";
import type { LoadedPolicy } from "./load.ts";
import { memberText } from "./member.ts";
import { CIRCUIT_FIELDS } from "./precedence.ts";
import { probeOf } from "./probed-url.ts";
import { ROLES } from "./roles.ts";
import { withoutPort } from "./routing.ts";
import { isShippedSource } from "./shipped-policy.ts";

/** Entries and overrides that have no effect, or another one than their author may expect. */
export function entryFindings(policy: LoadedPolicy): readonly PolicyFinding[] {
  return [
    ...extendsNone(policy),
    ...shadowModes(policy),
    ...orphanedMembers(policy),
    ...similarNames(policy),
    ...partialOverrides(policy),
    ...unusedBreakers(policy),
    ...repeatedValues(policy),
    ...maskedDefaults(policy),
    ...maskedEntries(policy),
    ...unusedAddresses(policy),
  ];
}

function extendsNone({ shipped, breakers }: LoadedPolicy): readonly PolicyFinding[] {
  return [
    ...(shipped === undefined
      ? [notice("extends-none", "extends: none: the shipped limits of hosts and services do not apply")]
      : []),
    ...(standsAlone(breakers.assignments)
      ? [notice("extends-none", "extends: none: the shipped breakers of hosts and services do not apply")]
      : []),
  ];
}

type AssignedValues = Pick<LoadedPolicy["ratelimits"], "assignments" | "index">;

function shadowModes({ ratelimits, breakers }: LoadedPolicy): readonly PolicyFinding[] {
  const found = (section: string, { assignments, index }: AssignedValues, what: string) =>
    assignments
      .filter(({ path, value }) => path.at(-1) === "mode" && value === "shadow")
      .filter(assignment => index.isInEffect(assignment))
      .map(({ where, path }) => {
        const scope = path.slice(0, -1).join(".") || "all hosts";
        return warning(
          "shadow-mode",
          `${where}: ${section}: ${what} of ${scope} only report, because mode is shadow; set mode: enforce to apply them`,
        );
      });
  return [...found("ratelimits", ratelimits, "limits"), ...found("breakers", breakers, "breakers")];
}

/** Hosts, suffixes and paths of a shipped service that do not belong to it any more. */
function orphanedMembers({ shipped, ratelimits: { resolved } }: LoadedPolicy): readonly PolicyFinding[] {
  return (shipped?.entries ?? []).flatMap(({ scope: { service, tiers = [] }, members }) =>
    members.flatMap(member => {
      if (tiers.length > 0) return [];
      const { host, path } = probeOf(member);
      const now = resolved.routing.find(host, path);
      if (now.service === service) return [];
      const { name } = resolved.route(host, "metadata", path);
      const place = now.service === undefined && now.listed.length === 0 ? "the defaults" : name;
      return [
        warning(
          "orphaned-member",
          `${memberText(member)} is no longer a member of service ${service}: the limits of ${place} apply to it`,
        ),
      ];
    }),
  );
}

function similarNames({ ratelimits: { options } }: LoadedPolicy): readonly PolicyFinding[] {
  const byName = Map.groupBy(Object.keys(options.services ?? {}), name => name.toLowerCase());
  return [...byName.values()]
    .filter(names => names.length > 1)
    .map(names =>
      warning("duplicate-service", `services ${names.join(" and ")} differ only in case: are they one service?`),
    );
}

/** A user's entry of a host does not change the paths of that host that belong to services. */
function partialOverrides({ ratelimits: { assignments, resolved } }: LoadedPolicy): readonly PolicyFinding[] {
  const { routing, entries } = resolved;
  const sources = new Map<string, string>();
  for (const { path, where } of assignments)
    if (path.length === 4 && path[0] === "hosts" && !isShippedSource(where)) sources.set(path[1] ?? "", where);
  const split = [...sources].filter(([host]) => routing.hasPaths(host));
  const paths = entries.flatMap(({ scope: { service, tiers = [] }, members }) =>
    tiers.length > 0 ? [] : members.filter(({ path }) => path !== "").map(member => ({ service, member })),
  );
  const byPattern = Map.groupBy(paths, ({ member }) => memberText({ ...member, path: "" }));
  return split.flatMap(([host, where]) => {
    const owned = patternsOf(host)
      .flatMap(pattern => byPattern.get(pattern) ?? [])
      .filter(({ service, member: { path } }) => {
        const routed = routing.find(host, path);
        return routed.service === service && routed.memberPath === path;
      });
    const parts = [...Map.groupBy(owned, ({ service }) => service)].map(
      ([service, ofService]) => `${ofService.map(({ member }) => memberText(member)).join(", ")} (service:${service})`,
    );
    return parts.length === 0
      ? []
      : [warning("partial-override", `${where}: hosts.${host} does not change ${parts.join(", ")}`)];
  });
}

/** The members that may contain a host: the host with and without its port, and every suffix above it. */
function patternsOf(host: string): readonly string[] {
  const bare = withoutPort(host);
  const labels = bare.split(".");
  return [...new Set([host, bare]), ...labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join(".")}`)];
}

function unusedBreakers({ ratelimits, breakers }: LoadedPolicy): readonly PolicyFinding[] {
  const known = ratelimits.options.services ?? {};
  return (
    Object.keys(breakers.options.services ?? {})
      .filter(service => !Object.hasOwn(known, service))
      .map(service => ({ service, where: breakers.index.whereOf(["services", service]) ?? "" }))
      // After `extends: none` of the limits, the shipped breakers may name services that do not exist.
      .filter(({ where }) => !isShippedSource(where))
      .map(({ service, where }) =>
        warning(
          "unused-breaker",
          `${where}: services.${service} has no effect: ratelimits.yaml has no service of that name`,
        ),
      )
  );
}

/** A user's default of all circuits that has no effect on hosts, because every role has a default. Only resolvers use it. */
function maskedDefaults({ breakers: { index } }: LoadedPolicy): readonly PolicyFinding[] {
  return CIRCUIT_FIELDS.flatMap(field => {
    const own = index.at(["defaults", field]).at(-1);
    const byRole = ROLES.map(role => index.at(["defaults", "roles", role, field]).at(-1)?.where);
    if (own === undefined || isShippedSource(own.where) || byRole.includes(undefined)) return [];
    const decide = [...new Set(byRole)].join(", ");
    return [
      warning(
        "dead-override",
        `${own.where}: defaults.${field} has no effect on hosts: defaults.roles.<role>.${field} decides (${decide}); set it for each role, for example with --breaker defaults:metadata=${field}:${own.value}`,
      ),
    ];
  });
}

/**
 * A user's number of a host or service that is stricter than the shipped number of one of its roles, which wins. A looser
 * one is not reported: the shipped roles exist to keep it from them.
 */
function maskedEntries({ breakers: { assignments, index } }: LoadedPolicy): readonly PolicyFinding[] {
  return assignments.flatMap(own => {
    const { path, value, where } = own;
    const [key, name, last] = path;
    const field = CIRCUIT_FIELDS.find(each => each === last);
    if (field === undefined || path.length !== 3 || isShippedSource(where) || !index.isInEffect(own)) return [];
    return ROLES.flatMap(role => {
      const byRole = index.at([key ?? "", name ?? "", "roles", role, field]).at(-1);
      if (byRole === undefined || !isShippedSource(byRole.where)) return [];
      const [ours, theirs] = [Number(value), Number(byRole.value)];
      if (field === "fail_max" ? ours >= theirs : ours <= theirs) return [];
      const target = key === "services" ? `service:${name}` : `host:${name}`;
      return [
        warning(
          "dead-override",
          `${where}: ${path.join(".")} has no effect on ${role}: ${byRole.path.join(".")} decides (${byRole.value}, ${byRole.where}); set it too, for example with --breaker ${target}:${role}=${field}:${value}`,
        ),
      ];
    });
  });
}

/** A user's value that a weaker layer has set already. The version of a file belongs to that file. */
function repeatedValues({ ratelimits, breakers }: LoadedPolicy): readonly PolicyFinding[] {
  return [ratelimits, breakers].flatMap(({ assignments, index }) =>
    assignments.flatMap(assignment => {
      const { path, value, where, replacesSpecific } = assignment;
      if (isShippedSource(where) || isMap(value) || replacesSpecific || path[0] === "version") return [];
      const all = index.at(path);
      const before = all[all.indexOf(assignment) - 1];
      if (before === undefined || !index.isInEffect(assignment)) return [];
      if (JSON.stringify(before.value) !== JSON.stringify(value)) return [];
      return [
        warning("dead-override", `${where}: ${path.join(".")} has no effect: ${before.where} sets the same value`),
      ];
    }),
  );
}

/** The address of a store that is not used, because its backend has none. */
function unusedAddresses({ ratelimits, breakers }: LoadedPolicy): readonly PolicyFinding[] {
  const { kind = "memory", dsn } = ratelimits.options.backend ?? {};
  const { backend = "none", dsn: cooldownDsn } = breakers.options.advanced?.cooldown_store ?? {};
  const found = (path: readonly string[], { index }: AssignedValues, key: string, value: string) =>
    warning(
      "dead-override",
      `${index.whereOf(path)}: ${path.join(".")} has no effect: ${key} is ${value}, which needs no address`,
    );
  return [
    ...(dsn && (kind === "memory" || kind === "multiprocess")
      ? [found(["backend", "dsn"], ratelimits, "backend.kind", kind)]
      : []),
    ...(cooldownDsn && backend === "none"
      ? [found(["advanced", "cooldown_store", "dsn"], breakers, "advanced.cooldown_store.backend", backend)]
      : []),
  ];
}
