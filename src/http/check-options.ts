import type { request as undiciRequest } from "undici";
import { nearest } from "../core/text/nearest.ts";
import { quote, shownValue } from "../core/text/quote.ts";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { storeAwayProblems, throwIfAny, unknownOptions } from "../policy/class-options.ts";
import { CALL_KEYS, type CallOptions } from "./call-options.ts";
import { callProblems } from "./check-call.ts";
import type { FetchOptions } from "./hub.ts";
import type { HubOptions, NetworkOptions, PolicyOptions, RetryOptions } from "./hub-options.ts";

/** If an option is missing in these lists, the type of `keysOf` makes that a compile error. */
const HUB_KEYS = keysOf<HubOptions>({
  policy: 0,
  env: 0,
  overrides: 0,
  store: 0,
  whenStoreAway: 0,
  fleetSize: 0,
  cache: 0,
  telemetry: 0,
  userAgent: 0,
  mailto: 0,
  retry: 0,
  network: 0,
  unreadBodyMs: 0,
  refusals: 0,
  crawlDelay: 0,
  defaults: 0,
  time: 0,
  random: 0,
  dispatcher: 0,
});
const POLICY_KEYS = keysOf<PolicyOptions>({ ratelimits: 0, breakers: 0, identities: 0 });
const RETRY_KEYS = keysOf<RetryOptions>({ attempts: 0, baseMs: 0, capMs: 0, deadlineMs: 0 });
const NETWORK_KEYS = keysOf<NetworkOptions>({
  allowPrivate: 0,
  proxy: 0,
  connectTo: 0,
  lookup: 0,
  tls: 0,
  headersTimeoutMs: 0,
  bodyTimeoutMs: 0,
  connectTimeoutMs: 0,
});

/** The options of WHATWG fetch, and `dispatcher`, which undici adds. */
export const FETCH_KEYS = keysOf<RequestInit & { readonly priority?: unknown } & Pick<FetchOptions, "cache">>({
  method: 0,
  headers: 0,
  body: 0,
  signal: 0,
  redirect: 0,
  cache: 0,
  credentials: 0,
  integrity: 0,
  keepalive: 0,
  mode: 0,
  priority: 0,
  referrer: 0,
  referrerPolicy: 0,
  duplex: 0,
  window: 0,
  dispatcher: 0,
});
/** The options of `undici.request`. */
const REQUEST_KEYS = keysOf<NonNullable<Parameters<typeof undiciRequest>[1]>>({
  method: 0,
  headers: 0,
  body: 0,
  signal: 0,
  query: 0,
  dispatcher: 0,
  headersTimeout: 0,
  bodyTimeout: 0,
  highWaterMark: 0,
  opaque: 0,
  onInfo: 0,
  responseHeaders: 0,
  idempotent: 0,
  blocking: 0,
  reset: 0,
  upgrade: 0,
  expectContinue: 0,
  typeOfService: 0,
});
const FETCH_AND_CALL: ReadonlySet<string> = new Set([...FETCH_KEYS, ...CALL_KEYS]);
const REQUEST_AND_CALL: ReadonlySet<string> = new Set([...REQUEST_KEYS, ...CALL_KEYS]);

/**
 * Throws a ConfigError that lists every unknown or invalid option. A misspelled option must not be ignored:
 * `allowprivate: false` would protect nothing, and misspelled limits would not apply.
 */
export function checkHubOptions(options: HubOptions): void {
  if (!isObject(options)) throwIfAny(unknownKeys(options, HUB_KEYS, "createHub"));
  const problems = [
    ...unknownKeys(options, HUB_KEYS, "createHub"),
    ...unknownKeys(options.policy, POLICY_KEYS, "createHub", "policy"),
    ...unknownKeys(options.retry === false ? undefined : options.retry, RETRY_KEYS, "createHub", "retry"),
    ...unknownKeys(options.network, NETWORK_KEYS, "createHub", "network"),
    ...callProblemsOf(options.defaults ?? {}, "createHub", "defaults"),
  ];
  const { telemetry, unreadBodyMs, dispatcher, network, refusals, time } = options;
  const add = (path: string, message: string) => problems.push({ where: "createHub", path, message });
  if (telemetry !== undefined && !(Array.isArray(telemetry) && telemetry.every(one => typeof one === "function")))
    add(
      "telemetry",
      `expected a list of functions, found ${Array.isArray(telemetry) ? "a list with another value" : typeof telemetry}`,
    );
  if (unreadBodyMs !== undefined && !(typeof unreadBodyMs === "number" && unreadBodyMs > 0))
    add("unreadBodyMs", `expected a number above 0, found ${shownValue(unreadBodyMs)}`);
  if (refusals !== undefined && refusals !== "throw" && refusals !== "respond")
    add("refusals", `expected "throw" or "respond", found ${shownValue(refusals)}`);
  problems.push(...storeAwayProblems(options, "createHub"));
  if (dispatcher !== undefined && typeof dispatcher?.dispatch !== "function")
    add("dispatcher", `expected an undici Dispatcher, found ${dispatcher === null ? "null" : typeof dispatcher}`);
  for (const [path, value] of [
    ["network.allowPrivate", network?.allowPrivate],
    ["crawlDelay", options.crawlDelay],
  ] as const)
    if (value !== undefined && typeof value !== "boolean")
      add(path, `expected true or false, found ${shownValue(value)}`);
  for (const key of ["headersTimeoutMs", "bodyTimeoutMs", "connectTimeoutMs"] as const) {
    const value = network?.[key];
    if (value !== undefined && !(typeof value === "number" && value >= 0))
      add(`network.${key}`, `expected a number of at least 0, found ${shownValue(value)}`);
  }
  for (const key of ["userAgent", "mailto"] as const) {
    const value = options[key];
    if (value !== undefined && typeof value !== "string") add(key, `expected a text, found ${shownValue(value)}`);
  }
  const connectTo: unknown = network?.connectTo;
  if (connectTo !== undefined && !(Array.isArray(connectTo) && connectTo.every(entry => typeof entry === "string")))
    add(
      "network.connectTo",
      `expected a list such as ["example.org:443:127.0.0.1:8443"], found ${shownValue(connectTo)}`,
    );
  for (const [path, value] of [
    ["network.lookup", network?.lookup],
    ["random", options.random],
  ] as const)
    if (value !== undefined && typeof value !== "function")
      add(path, `expected a function, found ${shownValue(value)}`);
  if (time !== undefined && typeof time?.monotonicUs !== "function")
    add("time", `expected a clock with the methods of Time, such as a FakeTime, found ${shownValue(time)}`);
  if (network?.proxy !== undefined && network.proxy !== "env")
    add("network.proxy", `expected "env", found ${quote(String(network.proxy))}`);
  if (dispatcher !== undefined && network !== undefined)
    add("network", "has no effect when dispatcher is given: remove one of the two");
  throwIfAny(problems);
}

/** Throws a ConfigError for an unknown option of `hub.reload`. */
export function checkPolicyOptions(options: PolicyOptions): void {
  throwIfAny(unknownKeys(options, POLICY_KEYS, "hub.reload"));
}

/** Throws a ConfigError for an unknown option of an order, such as those of `hub.limits.set`. */
export function checkOrderOptions(options: object, known: readonly string[], where: string): void {
  throwIfAny(unknownKeys(options, known, where));
}

/** Throws a ConfigError that lists every unknown or invalid option. `where` is the method, such as `hub.with`. */
export function checkCallOptions(options: object, where: string): void {
  throwIfAny(callProblemsOf(options, where));
}

/**
 * Throws a ConfigError for an unknown option that is probably a misspelled option of `CallOptions`. Other unknown
 * options have no effect, as for WHATWG fetch: libraries pass their own options on to the fetch that they are given.
 */
export function checkFetchOptions(options: object): void {
  checkKeys(options, FETCH_AND_CALL, "hub.fetch", key => nearest(key, CALL_KEYS) === undefined);
}

/** Throws a ConfigError for an option that is neither one of `undici.request` nor one of `CallOptions`. */
export function checkRequestOptions(options: object): void {
  checkKeys(options, REQUEST_AND_CALL, "hub.request");
}

/**
 * One pass over the keys: this runs for every request. An unknown option whose value is undefined is no error, because
 * libraries pass such options on for callers that did not set them.
 */
function checkKeys(
  options: object,
  known: ReadonlySet<string>,
  where: string,
  isIgnored: (key: string) => boolean = () => false,
): void {
  for (const key in options) {
    if (known.has(key) || !Object.hasOwn(options, key)) continue;
    if ((options as Record<string, unknown>)[key] === undefined || isIgnored(key)) continue;
    throw new ConfigError(unknownKeys({ [key]: true }, [...known], where));
  }
}

function callProblemsOf(call: object, where: string, path = ""): ConfigProblem[] {
  const unknown = unknownKeys(call, CALL_KEYS, where, path);
  if (!isObject(call)) return unknown;
  const invalid = callProblems(call as CallOptions).map(({ key, message }) => ({
    where,
    path: path === "" ? key : `${path}.${key}`,
    message,
  }));
  return [...unknown, ...invalid];
}

function unknownKeys(given: unknown, known: readonly string[], where: string, path = ""): ConfigProblem[] {
  if (given === undefined) return [];
  if (!isObject(given)) return [{ where, path, message: `expected an object, found ${shownValue(given)}` }];
  return unknownOptions(given, known, where, path);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function keysOf<Options>(keys: Record<keyof Options, 0>): readonly string[] {
  return Object.keys(keys);
}
