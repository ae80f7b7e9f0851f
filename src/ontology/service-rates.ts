import { parseRateMap, parseRates, type Rate } from "../core/limits/rate.ts";
import { ConfigError } from "../errors.ts";
import { parseOptions } from "../policy/parse-options.ts";
import * as s from "../policy/schema.ts";
import { rateSchema, serviceRatesSchema } from "./sources-schema.ts";

/**
 * Rate limits of ontology services. A rate is a string such as `8/second` or `8/second+300/minute`, or a list of such
 * strings; null or `none` means unlimited. A single per-second rate above 5/second also gets the window 300/minute.
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
const MINUTE_LIMIT: Rate = { limit: 300, windowUs: MINUTE_US };

const schema = s.object({
  default: rateSchema.optional(),
  per_service: serviceRatesSchema.optional(),
  guard_ms: s.number().min(0).max(60_000).optional(),
  shared_dir: s.string().min(1).optional(),
});

/** @throws ConfigError that lists every value of a wrong type, or else the first invalid rate or service name. */
export function parseOntologySettings(settings: OntologySettings): OntologyRates {
  const where = "initManager";
  const {
    default: fallback = DEFAULT_RATE,
    per_service = {},
    guard_ms: guardMs,
    shared_dir: sharedDir,
  } = parseOptions(schema, settings, where);
  const atPath = <Value>(path: string, parse: () => Value): Value => {
    try {
      return parse();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new ConfigError([{ where, path, message: error.message }], { cause: error });
    }
  };
  const perService =
    typeof per_service === "string"
      ? [...atPath("per_service", () => parseRateMap(per_service))].map(
          ([name, rates]) => [name, withMinuteLimit(rates)] as const,
        )
      : Object.entries(per_service).map(
          ([name, text]) => [name, atPath(`per_service.${name}`, () => ratesOf(text))] as const,
        );
  for (const [name] of perService) atPath(`per_service.${name}`, () => checkServiceName(name));
  return { default: atPath("default", () => ratesOf(fallback)), perService: new Map(perService), guardMs, sharedDir };
}

/** @throws RangeError: a colon or a space in a service name would make keys and table cells ambiguous. */
export function checkServiceName(name: string): void {
  if (/^[\w.-]{1,64}$/.test(name)) return;
  throw new RangeError(
    `invalid service name ${JSON.stringify(name.slice(0, 80))}; use 1 to 64 letters, digits, ".", "_" and "-"`,
  );
}

function ratesOf(text: string | readonly string[] | null): readonly Rate[] {
  const isUnlimited = text === null || (typeof text === "string" && /^(?:null|none|unlimited)$/i.test(text));
  return isUnlimited ? [] : withMinuteLimit(parseRates(text));
}

/**
 * Adds the window 300/minute if the only rate is per second and permits more than that in a minute: a rate per second
 * alone does not limit a long crawl.
 */
function withMinuteLimit(rates: readonly Rate[]): readonly Rate[] {
  const [only, ...others] = rates;
  const needsLimit = only?.windowUs === SECOND_US && others.length === 0 && only.limit * 60 > MINUTE_LIMIT.limit;
  return needsLimit ? [only, MINUTE_LIMIT] : rates;
}
