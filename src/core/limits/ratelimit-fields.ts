import { type BareItem, type Item, isInnerList, parseDictionary, parseList, Token } from "structured-headers";
import { parseHttpDate } from "../text/http-date.ts";

/**
 * One limit that a response announces. Each malformed or implausible field is left out, so every field that is present can
 * be applied. At least one of `limit`, `remaining` and `concurrency` is present.
 */
export interface AnnouncedLimit {
  /** The family of header fields it was read from. */
  readonly source: "ratelimit" | "ratelimit-dictionary" | "ratelimit-triple" | "x-ratelimit" | "x-rate-limit";
  /** The server's name of the policy, printable ASCII. Only `ratelimit` (draft 10) has one. */
  readonly name?: string;
  /** Requests per window, 1 to 1e9. Without `windowUs` it is not a rate, because the window is unknown. */
  readonly limit?: number;
  /** The window that `limit` is counted in, up to 31 days. Never without `limit`. */
  readonly windowUs?: number;
  /**
   * Requests left, 0 to 1e9. Zero holds a key only together with `resetMs`: NCBI sends zero without a reset in
   * ordinary responses. It may exceed a `limit` that has a window (an extra burst), so never subtract the two.
   */
  readonly remaining?: number;
  /** Milliseconds until `remaining` is refilled, up to 31 days. Some servers send the length of the window instead. */
  readonly resetMs?: number;
  /** Requests that may be in flight at the same time, 1 to 1e9. */
  readonly concurrency?: number;
}

type LimitFields = { readonly [Key in keyof Omit<AnnouncedLimit, "source">]: AnnouncedLimit[Key] | undefined };
/** The fields of several limits: each has one value for each limit, or one for all. */
type LimitColumns = { readonly [Key in keyof LimitFields]?: readonly LimitFields[Key][] };
type HeaderLookup = (name: string) => string | undefined;

const FIELD_CHARS_MAX = 4096;
/** More policies than any server has; bounds the work that one response can cause. */
const POLICIES_MAX = 32;
const COUNT_MAX = 1e9;
const SPAN_MS_MAX = 31 * 86_400_000;
/** A reset of at least this is in epoch milliseconds (since 1973); below, in epoch seconds (until the year 5138). */
const EPOCH_MS_MIN = 1e11;

/**
 * Every limit that a response announces, in any of the five forms. Never throws.
 * @param header returns a field by its name in lower case; repeated fields are joined with a comma.
 * @param wallMs the local wall clock, for an epoch reset in a response without a valid `Date`.
 */
export function announcedLimits(header: HeaderLookup, wallMs: number): readonly AnnouncedLimit[] {
  const field: HeaderLookup = name => {
    const text = header(name);
    return text !== undefined && text.length <= FIELD_CHARS_MAX ? text.trim() : undefined;
  };
  const nowMs = () => parseHttpDate(field("date") ?? "", wallMs) ?? wallMs;
  const prefixed = (prefix: string, misspelt?: string): LimitColumns => ({
    remaining: numbers(field(`${prefix}remaining`) ?? (misspelt && field(misspelt))).map(count),
    resetMs: numbers(field(`${prefix}reset`)).map(value => resetMs(value, nowMs)),
  });

  const policies = items(field("ratelimit-policy"));
  const [triple, ...triplePolicies] = countedQuotas(items(field("ratelimit-limit")));
  // The two older forms use the same policy field; a server sends only one of the two forms.
  const [ofDictionary, ofTriple] = triple ? [[], countedQuotas(policies)] : [countedQuotas(policies), []];
  const [state, ...otherStates] = layers(prefixed("ratelimit-"));
  return [
    ...namedQuotas(policies, items(field("ratelimit"))),
    ...joined("ratelimit-dictionary", dictionaryState(field("ratelimit")), ofDictionary),
    ...joined("ratelimit-triple", { ...state, ...triple }, [...triplePolicies, ...ofTriple]),
    ...otherStates.flatMap(other => announcement("ratelimit-triple", other)),
    ...layers({
      limit: numbers(field("x-ratelimit-limit")).map(positive),
      ...prefixed("x-ratelimit-", "x-ratelimitremaining"), // CORE leaves out the hyphen.
    }).flatMap(layer => announcement("x-ratelimit", layer)),
    ...layers({
      limit: numbers(field("x-rate-limit-limit")).map(positive),
      windowUs: intervalsUs(field("x-rate-limit-interval")),
      concurrency: numbers(field("x-concurrency-limit")).map(positive),
      ...prefixed("x-rate-limit-"),
    }).flatMap(layer => announcement("x-rate-limit", layer)),
  ];
}

/** The fewest requests that any of the limits leaves; undefined if none says it. */
export function leastRemaining(announced: readonly AnnouncedLimit[]): number | undefined {
  let least: number | undefined;
  for (const { remaining } of announced) {
    if (remaining !== undefined && (least === undefined || remaining < least)) least = remaining;
  }
  return least;
}

/** Draft 10: `RateLimit-Policy: "burst";q=100;w=60` and `RateLimit: "burst";r=50;t=30`, joined by name. */
function namedQuotas(policies: readonly Item[], states: readonly Item[]): readonly AnnouncedLimit[] {
  const statesByName = new Map(states.map(([value, parameters]) => [textOf(value), parameters]));
  const names = new Set(policies.map(([value]) => textOf(value)));
  const unmatchedStates = states.filter(([value]) => !names.has(textOf(value)));
  return [...policies, ...unmatchedStates].flatMap(([value, policy]) => {
    const name = textOf(value);
    if (name === undefined) return [];
    const quota = positive(policy.get("q"));
    const unit = policy.has("qu") ? textOf(policy.get("qu")) : "requests";
    // `r` counts free slots here, not requests of a window, so it must not hold the key until `t`.
    if (unit === "concurrent-requests") return announcement("ratelimit", { name, concurrency: quota });
    if (unit !== "requests") return [];
    const state = statesByName.get(name);
    const now = { remaining: count(state?.get("r")), resetMs: spanMs(state?.get("t")) };
    return announcement("ratelimit", { name, limit: quota, windowUs: windowUs(policy.get("w")), ...now });
  });
}

/** Draft 7: `RateLimit: limit=100, remaining=50, reset=5`. */
function dictionaryState(text: string | undefined): LimitFields {
  const members = text === undefined ? undefined : attempt(() => parseDictionary(text));
  const value = (key: string) => members?.get(key)?.[0];
  return { limit: positive(value("limit")), remaining: count(value("remaining")), resetMs: spanMs(value("reset")) };
}

/** `100, 100;w=60, 5000;w=3600`: quotas without a name. */
function countedQuotas(members: readonly Item[]): readonly LimitFields[] {
  return members.flatMap(([value, parameters]) =>
    typeof value === "number" ? [{ limit: positive(value), windowUs: windowUs(parameters.get("w")) }] : [],
  );
}

/** Joins the state with the policy of the same limit, or with the only policy. Other policies stay separate. */
function joined(
  source: AnnouncedLimit["source"],
  state: LimitFields,
  policies: readonly LimitFields[],
): readonly AnnouncedLimit[] {
  const isOnly = state.limit === undefined && policies.length === 1;
  const own = policies.find(({ limit }) => isOnly || (limit !== undefined && limit === state.limit));
  const merged = { ...state, limit: state.limit ?? own?.limit, windowUs: state.windowUs ?? own?.windowUs };
  return [merged, ...policies.filter(policy => policy !== own)].flatMap(fields => announcement(source, fields));
}

/** A list with one limit, or an empty list when no useful field is left. */
function announcement(source: AnnouncedLimit["source"], fields: LimitFields): readonly AnnouncedLimit[] {
  const { name, windowUs, remaining, resetMs, concurrency } = fields;
  // OpenAlex sent a limit of 5 with 9 remaining while it allowed 10: a limit without a window that is below its own
  // `remaining` is dropped. A limit with a window is a policy and is kept.
  const isContradicted = windowUs === undefined && (remaining ?? 0) > (fields.limit ?? 0);
  const limit = isContradicted ? undefined : fields.limit;
  if (limit === undefined && remaining === undefined && concurrency === undefined) return [];
  return [
    {
      source,
      ...(name !== undefined && { name }),
      ...(limit !== undefined && { limit }),
      ...(limit !== undefined && windowUs !== undefined && { windowUs }),
      ...(remaining !== undefined && { remaining }),
      ...(resetMs !== undefined && { resetMs }),
      ...(concurrency !== undefined && { concurrency }),
    },
  ];
}

function count(value: unknown): number | undefined {
  return Number.isInteger(value) ? within(Number(value), COUNT_MAX) : undefined;
}

function positive(value: unknown): number | undefined {
  return count(value) || undefined;
}

/** Structured decimals have at most three places, so rounding the product gives the exact value. */
function spanMs(seconds: unknown): number | undefined {
  return typeof seconds === "number" ? within(Math.round(seconds * 1000), SPAN_MS_MAX) : undefined;
}

function windowUs(seconds: unknown): number | undefined {
  return (Number.isInteger(seconds) && (spanMs(seconds) ?? 0) * 1000) || undefined;
}

/** Servers send a delay, epoch seconds (Zenodo) or epoch milliseconds; they differ only in magnitude. */
function resetMs(value: unknown, nowMs: () => number): number | undefined {
  if (typeof value !== "number" || value * 1000 <= SPAN_MS_MAX) return spanMs(value);
  const untilMs = value < EPOCH_MS_MIN ? Math.round(value * 1000) : value;
  return within(Math.ceil(untilMs - nowMs()), SPAN_MS_MAX);
}

/** Crossref sends `1s`. */
function intervalsUs(text: string | undefined): readonly (number | undefined)[] {
  return (text ?? "").split(",", POLICIES_MAX).map(interval => {
    const [, digits, unit] = /^(\d{1,9}) ?([smh])?$/.exec(interval.trim()) ?? [];
    return windowUs(Number(digits) * (unit === "h" ? 3600 : unit === "m" ? 60 : 1));
  });
}

/** `abs`, because `-0` is a valid number in a structured field. */
function within(value: number, max: number): number | undefined {
  return value >= 0 && value <= max ? Math.abs(value) : undefined;
}

function textOf(value: BareItem | undefined): string | undefined {
  return value instanceof Token ? value.toString() : typeof value === "string" ? value : undefined;
}

/** The numbers of a field; undefined for a member that is not a number. */
function numbers(text: string | undefined): readonly (number | undefined)[] {
  const members = text ? attempt(() => parseList(text)) : undefined;
  return members?.slice(0, POLICIES_MAX).map(([value]) => (typeof value === "number" ? value : undefined)) ?? [];
}

/**
 * The limits of a family whose fields were sent several times: by a service and its gateway, or twice by the same one.
 * Values at the same position belong to the same limit. Crossref has sent `x-rate-limit-limit: 50, 50` with
 * `x-rate-limit-interval: 1s, 1s`.
 */
function layers(columns: LimitColumns): readonly LimitFields[] {
  const { limit = [], windowUs = [], remaining = [], resetMs = [], concurrency = [] } = columns;
  const rows = Math.max(limit.length, windowUs.length, remaining.length, resetMs.length, concurrency.length);
  const at = <Value>(column: readonly Value[], row: number) => (column.length === 1 ? column[0] : column[row]);
  const found = new Map<string, LimitFields>();
  for (let row = 0; row < rows; row += 1) {
    const layer = {
      limit: at(limit, row),
      windowUs: at(windowUs, row),
      remaining: at(remaining, row),
      resetMs: at(resetMs, row),
      concurrency: at(concurrency, row),
    };
    found.set(Object.values(layer).join(), layer);
  }
  return [...found.values()];
}

function items(text: string | undefined): readonly Item[] {
  const members = text ? attempt(() => parseList(text)) : undefined;
  return members?.filter(member => !isInnerList(member)).slice(0, POLICIES_MAX) ?? [];
}

/** The parser throws when the text is not a structured field; the standard says to ignore the whole field then. */
function attempt<Value>(parse: () => Value): Value | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}
