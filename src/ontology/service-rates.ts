import { z } from "zod";
import { parseRateMap, parseRates, type Rate } from "../core/limits/rate.ts";
import { ConfigError } from "../errors.ts";
import { parseOptions } from "../policy/parse-options.ts";

/**
 * Rate limits of ontology services. A rate is a string such as `8/second` or `8/second+300/minute`, or a list of such
 * strings; null means unlimited. A single per-second rate above 5/second also gets the window 300/minute.
 */
export interface OntologySettings {
  /** The limit of services that `per_service` does not name. @default "8/second", with 300/minute */
  readonly default?: string | readonly string[] | null | undefined;
  /** Limits by service name: a map, or a string such as `"ols:4/second;bioportal:2/second"`. @default none */
  readonly per_service?: string | Readonly<Record<string, string | readonly string[] | null>> | undefined;
  /** Milliseconds added to every window to absorb network jitter (law L12), 0 to 60000. @default 25 */
  readonly guard_ms?: number | undefined;
  /**
   * A folder. Processes that name the same folder share their limits and cooldowns through a SQLite file in it.
   * @default none: each process has its own limits
   */
  readonly shared_dir?: string | undefined;
}

/** Parsed rates. An empty list means unlimited. */
export interface OntologyRates {
  /** The rates of services that `perService` does not name. */
  readonly default: readonly Rate[];
  /** The rates of single services, by name. */
  readonly perService: ReadonlyMap<string, readonly Rate[]>;
  /** Milliseconds added to every window; undefined for the default, 25. */
  readonly guardMs: number | undefined;
  /** The folder through which processes share limits; undefined if they do not. */
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

/** @throws ConfigError that lists every invalid setting. */
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

/** @throws RangeError: a colon or a space in a service name would make keys and table cells ambiguous. */
export function checkServiceName(name: string): void {
  if (/^[\w.-]{1,64}$/.test(name)) return;
  throw new RangeError(
    `invalid service name ${JSON.stringify(name.slice(0, 80))}; use 1 to 64 letters, digits, ".", "_" and "-"`,
  );
}

function ratesOf(text: string | readonly string[] | null): readonly Rate[] {
  return text === null ? [] : guarded(parseRates(text));
}

/**
 * Adds the window 300/minute to a single per-second rate that would permit more, because such a rate limits no long
 * crawl.
 */
function guarded(rates: readonly Rate[]): readonly Rate[] {
  const [only, ...others] = rates;
  const needsGuard = only?.windowUs === SECOND_US && others.length === 0 && only.limit * 60 > MINUTE_GUARD.limit;
  return needsGuard ? [only, MINUTE_GUARD] : rates;
}
