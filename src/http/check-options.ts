import { nearest } from "../core/text/nearest.ts";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { CALL_KEYS } from "./call-options.ts";
import type { HubOptions, NetworkOptions, PolicyOptions, RetryOptions } from "./hub-options.ts";

/** Typed so that a new option cannot be forgotten here. */
const HUB = keysOf<HubOptions>({
  policy: 0,
  env: 0,
  overrides: 0,
  store: 0,
  cache: 0,
  telemetry: 0,
  userAgent: 0,
  mailto: 0,
  retry: 0,
  network: 0,
  unreadBodyMs: 0,
  defaults: 0,
  time: 0,
  random: 0,
  dispatcher: 0,
});
const POLICY = keysOf<PolicyOptions>({ ratelimits: 0, breakers: 0, identities: 0 });
const RETRY = keysOf<RetryOptions>({ attempts: 0, baseMs: 0, capMs: 0, deadlineMs: 0 });
const NETWORK = keysOf<NetworkOptions>({
  allowPrivate: 0,
  connectTo: 0,
  lookup: 0,
  tls: 0,
  headersTimeoutMs: 0,
  bodyTimeoutMs: 0,
  connectTimeoutMs: 0,
});

/**
 * Throws a ConfigError for options that a hub does not have: `allowprivate: false` that protects nobody, or limits under
 * a name that nobody reads, would be worse than an error.
 */
export function checkHubOptions(options: HubOptions): void {
  const problems = [
    ...unknownKeys(options, HUB, ""),
    ...unknownKeys(options.policy, POLICY, "policy"),
    ...unknownKeys(options.retry, RETRY, "retry"),
    ...unknownKeys(options.network, NETWORK, "network"),
    ...unknownKeys(options.defaults, CALL_KEYS, "defaults"),
  ];
  const { telemetry, unreadBodyMs, dispatcher, network } = options;
  const add = (path: string, message: string) => problems.push({ where: "createHub", path, message });
  if (telemetry !== undefined && !(Array.isArray(telemetry) && telemetry.every(one => typeof one === "function")))
    add("telemetry", "expected a list of functions");
  if (unreadBodyMs !== undefined && !(typeof unreadBodyMs === "number" && unreadBodyMs > 0))
    add("unreadBodyMs", `expected a number above 0, found ${JSON.stringify(unreadBodyMs)}`);
  if (dispatcher !== undefined && typeof dispatcher.dispatch !== "function")
    add("dispatcher", "expected a dispatcher of undici");
  if (dispatcher !== undefined && network !== undefined)
    add("network", "does not apply to a dispatcher of your own: leave one of the two out");
  if (problems.length > 0) throw new ConfigError(problems);
}

export function checkPolicyOptions(options: PolicyOptions): void {
  const problems = unknownKeys(options, POLICY, "policy");
  if (problems.length > 0) throw new ConfigError(problems);
}

/** For options that are a call's and nothing else's. */
export function checkCallKeys(options: object): void {
  const problems = unknownKeys(options, CALL_KEYS, "call");
  if (problems.length > 0) throw new ConfigError(problems);
}

function unknownKeys(given: unknown, known: readonly string[], path: string): ConfigProblem[] {
  if (given === undefined || given === false) return [];
  if (typeof given !== "object" || given === null)
    return [{ where: "createHub", path, message: `expected an object, found ${JSON.stringify(given)}` }];
  return Object.keys(given)
    .filter(key => !known.includes(key))
    .map(key => {
      const meant = nearest(key, known);
      const hint = meant === undefined ? `the options are ${known.join(", ")}` : `did you mean ${meant}?`;
      return { where: "createHub", path: path === "" ? key : `${path}.${key}`, message: `unknown option: ${hint}` };
    });
}

function keysOf<Options>(keys: Record<keyof Options, 0>): readonly string[] {
  return Object.keys(keys);
}
