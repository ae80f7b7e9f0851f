import { NO_UNIT } from "./breaker-policy.ts";
import { type PolicyFinding, warning } from "./finding.ts";
import type { Assignment, SectionName } from "./layer.ts";
import type { LoadedPolicy } from "./load.ts";
import {
  breakerEntryPaths,
  CIRCUIT_FIELDS,
  circuitPaths,
  type KeyPath,
  type LimitScope,
  scopePlaces,
} from "./precedence.ts";
import { ROLES } from "./roles.ts";
import { serviceName } from "./service-name.ts";
import { isShippedSource } from "./shipped-policy.ts";

/** Whether a value is looser than the shipped one. */
type IsLooser = (value: unknown, shipped: unknown) => boolean;

/** One value of the policy: the keys that can set it, weakest first. */
interface OrderedSetting {
  readonly section: SectionName;
  readonly paths: readonly KeyPath[];
  readonly isLooser: IsLooser;
}

const isHigher: IsLooser = (value, shipped) => Number(value) > Number(shipped);
const isLower: IsLooser = (value, shipped) => Number(value) < Number(shipped);
const isOff: IsLooser = (value, shipped) => shipped === true && value === false;
/** Lists of statuses or of rules. */
const lacksSome: IsLooser = (value, shipped) => {
  const texts = new Set([value].flat().map(each => JSON.stringify(each)));
  return [shipped].flat().some(each => !texts.has(JSON.stringify(each)));
};

/** In which direction a number of a circuit is looser. */
const CIRCUIT_ORDER: Readonly<Record<(typeof CIRCUIT_FIELDS)[number], IsLooser>> = {
  fail_max: isHigher,
  reset_timeout_s: isLower,
};

/** The settings that hold for all hosts. */
const COMMON: readonly OrderedSetting[] = [
  commonSetting("ratelimits", ["global", "max_inflight"], isHigher),
  commonSetting("breakers", ["defaults", "classify", "failure_statuses"], lacksSome),
  ...ROLES.map(role => commonSetting("breakers", ["defaults", "half_open", "trial_calls", role], isHigher)),
  commonSetting("breakers", ["advanced", "rolling_window", "enabled"], isOff),
  commonSetting("breakers", ["advanced", "rolling_window", "threshold_failures"], isHigher),
  commonSetting("breakers", ["advanced", "rolling_window", "window_s"], isLower),
  commonSetting("breakers", ["advanced", "rolling_window", "cooldown_s"], isLower),
  commonSetting("breakers", ["advanced", "adaptive_reset", "enabled"], isOff),
  commonSetting("breakers", ["advanced", "ramp_up", "enabled"], isOff),
  commonSetting("breakers", ["advanced", "ramp_up", "max_calls"], isHigher),
];

/**
 * Settings that are looser than the shipped ones: circuits that open later or close earlier, shorter cooldowns, more
 * requests in flight. Each key of the user is reported once, with the first shipped value that it loosens.
 */
export function looserSettings(policy: LoadedPolicy): readonly PolicyFinding[] {
  const found = new Map<Assignment, PolicyFinding>();
  for (const setting of [...COMMON, ...scopesOf(policy).flatMap(settingsOf)]) {
    const { index } = policy[setting.section];
    const own = setting.paths.flatMap(path => index.at(path)).at(-1);
    const shipped = setting.paths.flatMap(path => index.at(path).filter(({ where }) => isShippedSource(where))).at(-1);
    if (own === undefined || shipped === undefined || isShippedSource(own.where) || found.has(own)) continue;
    if (setting.isLooser(own.value, shipped.value)) found.set(own, finding(own, shipped));
  }
  return [...found.values(), ...neutralFailures(policy), ...partitionedBreakers(policy)];
}

function commonSetting(section: SectionName, path: KeyPath, isLooser: IsLooser): OrderedSetting {
  return { section, paths: [path], isLooser };
}

function settingsOf(scope: LimitScope): readonly OrderedSetting[] {
  const section = "breakers";
  const places: readonly KeyPath[] = [["defaults"], ...scopePlaces(scope).map(({ path }) => path)];
  return [
    { section, paths: breakerEntryPaths("retry_after_cap_s", scope), isLooser: isLower },
    // The rules of all places apply together, so each list is compared with itself.
    ...places.map(path => commonSetting(section, [...path, "throttles"], lacksSome)),
    ...CIRCUIT_FIELDS.flatMap(field =>
      ROLES.map(
        role => ({ section, paths: circuitPaths(field, role, scope), isLooser: CIRCUIT_ORDER[field] }) as const,
      ),
    ),
  ];
}

/** The entries that decide for all other hosts, and for each host and service that something is shipped for. */
function scopesOf(policy: LoadedPolicy): readonly LimitScope[] {
  const { ratelimits, breakers } = policy;
  const hosts = [...ratelimits.resolved.routing.hostNames(), ...Object.keys(breakers.options.hosts ?? {})];
  const services = Object.keys(ratelimits.options.services ?? {});
  const units = new Set([
    NO_UNIT,
    ...hosts.filter(host => isShipped(policy, "hosts", host)).map(host => breakers.resolved.route(host).circuit),
    ...services.filter(service => isShipped(policy, "services", service)).map(serviceName),
  ]);
  return [...units].map(unit => breakers.resolved.scopeOf(unit));
}

/** False for a host or service that only the user lists: its numbers are the user's own choice. */
function isShipped({ ratelimits, breakers, shipped }: LoadedPolicy, key: "hosts" | "services", name: string): boolean {
  if (key === "hosts" && shipped?.scopeOf(name).service !== undefined) return true;
  return [ratelimits, breakers].some(({ index }) => index.at([key, name]).some(({ where }) => isShippedSource(where)));
}

function finding(own: Assignment, shipped: Assignment): PolicyFinding {
  const note = shipped.note === undefined ? "" : ` (${shipped.note})`;
  return looser(
    own,
    `is ${valueText(own.value)}; the shipped ${shipped.path.join(".")} is ${valueText(shipped.value)}${note}`,
  );
}

/** Statuses that are shipped as failures. The list of neutral ones wins over the list of failures. */
function neutralFailures({ breakers: { index } }: LoadedPolicy): readonly PolicyFinding[] {
  const own = index.at(["defaults", "classify", "neutral_statuses"]).at(-1);
  const shipped = index.at(["defaults", "classify", "failure_statuses"]).find(({ where }) => isShippedSource(where));
  const neutral = [own?.value].flat().filter(status => [shipped?.value].flat().includes(status));
  if (own === undefined || shipped === undefined || neutral.length === 0) return [];
  return [
    looser(own, `makes ${neutral.join(", ")} neutral; in the shipped ${shipped.path.join(".")} they are failures`),
  ];
}

/** Each partition has circuits and cooldowns of its own, so that a Retry-After holds back one of them only. */
function partitionedBreakers(policy: LoadedPolicy): readonly PolicyFinding[] {
  const { assignments, index } = policy.breakers;
  return assignments
    .filter(own => index.isInEffect(own))
    .filter(({ path, value, where }) => path.at(-1) === "per" && value === "partition" && !isShippedSource(where))
    .filter(({ path: [key, name = ""] }) => key === "defaults" || isShipped(policy, key as "hosts", name))
    .map(own =>
      looser(own, "is partition; by the shipped settings a Retry-After holds back the calls of all partitions"),
    );
}

function looser({ where, path }: Assignment, how: string): PolicyFinding {
  return warning("looser-than-shipped", `${where}: ${path.join(".")} ${how}`);
}

function valueText(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
