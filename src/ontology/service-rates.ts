import { z } from "zod";
import { parseRateMap, parseRates, type Rate } from "../core/limits/rate.ts";
import { ConfigError } from "../errors.ts";
import { parseOptions } from "../policy/parse-options.ts";

/** How often the services of ontologies may be asked. A rate is a text such as `8/second`; null means unlimited. */
export interface OntologySettings {
  /** For services that `per_service` does not name. @default "8/second", held to 300/minute */
  readonly default?: string | readonly string[] | null | undefined;
  /** By service: a map, or `"ols:4/second;bioportal:2/second"`. */
  readonly per_service?: string | Readonly<Record<string, string | readonly string[] | null>> | undefined;
  /** Widens every window, for the network's sake. @default 25 */
  readonly guard_ms?: number | undefined;
  /** Processes that name the same folder keep one limit together, by a file in it. @default each has its own */
  readonly shared_dir?: string | undefined;
}

/** Rates by service, complete. An empty list is unlimited. */
export interface OntologyRates {
  readonly default: readonly Rate[];
  readonly perService: ReadonlyMap<string, readonly Rate[]>;
  readonly guardMs: number | undefined;
  readonly sharedDir: string | undefined;
}

const DEFAULT_RATE = "8/second";
const SECOND_US = 1_000_000;
const MINUTE_US = 60_000_000;
const MINUTE_GUARD: Rate = { limit: 300, windowUs: MINUTE_US };

const rate = z.union([z.string(), z.array(z.string())]).nullable();
const schema = z.strictObject({
  default: rate.optional(),
  per_service: z.union([z.string(), z.record(z.string().min(1), rate)]).optional(),
  guard_ms: z.number().min(0).max(60_000).optional(),
  shared_dir: z.string().min(1).optional(),
});

/** Reads the settings, or throws a ConfigError that lists what is wrong with them. */
export function parseOntologySettings(settings: OntologySettings): OntologyRates {
  const where = "initManager";
  const {
    default: fallback = DEFAULT_RATE,
    per_service = {},
    guard_ms: guardMs,
    shared_dir: sharedDir,
  } = parseOptions(schema, settings, where);
  const at = <Value>(path: string, read: () => Value): Value => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new ConfigError([{ where, path, message: error.message }], { cause: error });
    }
  };
  const perService =
    typeof per_service === "string"
      ? [...at("per_service", () => parseRateMap(per_service))].map(([name, rates]) => [name, guarded(rates)] as const)
      : Object.entries(per_service).map(
          ([name, text]) => [name, at(`per_service.${name}`, () => ratesOf(text))] as const,
        );
  for (const [name] of perService) at(`per_service.${name}`, () => checkServiceName(name));
  return { default: at("default", () => ratesOf(fallback)), perService: new Map(perService), guardMs, sharedDir };
}

/** Part of keys and tables, so that it must not look like more. Throws a RangeError. */
export function checkServiceName(name: string): void {
  if (/^[\w.-]{1,64}$/.test(name)) return;
  throw new RangeError(
    `${JSON.stringify(name.slice(0, 80))} is not the name of a service; use letters, digits, ".", "_" and "-"`,
  );
}

function ratesOf(text: string | readonly string[] | null): readonly Rate[] {
  return text === null ? [] : guarded(parseRates(text));
}

/** A lone per-second rate says nothing about a long crawl: its minute is held to 300 where it would exceed that. */
function guarded(rates: readonly Rate[]): readonly Rate[] {
  const [only, ...others] = rates;
  const needsGuard = only?.windowUs === SECOND_US && others.length === 0 && only.limit * 60 > MINUTE_GUARD.limit;
  return needsGuard ? [only, MINUTE_GUARD] : rates;
}
