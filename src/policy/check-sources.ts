import type { ConfigProblem } from "../errors.ts";
import { unknownOptions } from "./class-options.ts";
import type { PolicyOverrides } from "./flag-layer.ts";
import type { PolicySources } from "./load.ts";

type ValueKind = "text" | "texts" | "number";

/** The type makes a new option that is missing here a compile error. */
const SOURCES: Record<keyof PolicySources, 0> = {
  ratelimits: 0,
  breakers: 0,
  identities: 0,
  mailto: 0,
  env: 0,
  overrides: 0,
};
const FILE_SOURCES = ["ratelimits", "breakers", "identities"] as const satisfies readonly (keyof PolicySources)[];
const OVERRIDES: Record<keyof PolicyOverrides, ValueKind> = {
  rate: "texts",
  rateBackend: "text",
  rateDsn: "text",
  whenStoreAway: "text",
  fleetSize: "number",
  maxInflight: "number",
  aimd: "text",
  breaker: "texts",
  breakerRole: "texts",
  breakerResolver: "texts",
  breakerRolling: "text",
};
const EXPECTED: Readonly<Record<ValueKind, string>> = {
  text: "a text",
  texts: "a list of texts",
  number: "a whole number, or a text with one",
};

/** The overrides among the options of a command, which has other options too. */
export function pickOverrides(options: Readonly<Record<string, unknown>>): PolicyOverrides {
  return Object.fromEntries(Object.entries(options).filter(([key]) => Object.hasOwn(OVERRIDES, key)));
}

/**
 * The problems of what a program passes to `loadPolicy` or `createHub`: unknown options and values of the wrong type. A
 * misspelled option must not be ignored, because its limits would not apply.
 */
export function checkSources(sources: PolicySources): ConfigProblem[] {
  if (!isObject(sources))
    return [{ where: "loadPolicy", path: "", message: `expected an object, found ${kindText(sources)}` }];
  const problems = unknownOptions(sources, Object.keys(SOURCES), "loadPolicy");
  for (const key of FILE_SOURCES)
    if (sources[key] === "")
      problems.push({
        where: "loadPolicy",
        path: key,
        message: "expected the path of a YAML file, or an object, found an empty text",
      });
  const { env, overrides } = sources;
  if (env !== undefined && !isObject(env))
    problems.push({
      where: "env",
      path: "",
      message: `expected an object such as process.env, found ${kindText(env)}`,
    });
  return [...problems, ...(overrides === undefined ? [] : checkOverrides(overrides))];
}

function checkOverrides(overrides: PolicyOverrides): ConfigProblem[] {
  if (!isObject(overrides))
    return [{ where: "overrides", path: "", message: `expected an object, found ${kindText(overrides)}` }];
  const problems = unknownOptions(overrides, Object.keys(OVERRIDES), "overrides");
  for (const [key, kind] of Object.entries(OVERRIDES)) {
    const value: unknown = overrides[key as keyof PolicyOverrides];
    if (value === undefined || isOfKind(kind, value)) continue;
    problems.push({ where: "overrides", path: key, message: `expected ${EXPECTED[kind]}, found ${kindText(value)}` });
  }
  return problems;
}

function isOfKind(kind: ValueKind, value: unknown): boolean {
  if (kind === "texts") return Array.isArray(value) && value.every(item => typeof item === "string");
  return typeof value === "string" || (kind === "number" && typeof value === "number");
}

/** The kind of a value and not the value itself, which may be a secret. */
function kindText(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `a ${typeof value}`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
