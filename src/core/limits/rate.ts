/**
 * The grammar of rates: `<count>/<k?><unit>`, windows joined by `+`.
 * `10/SECOND`, `1/3SECOND`, `300/min`, `10/SECOND+5000/HOUR`; case does not matter.
 */
import { quote } from "../text/quote.ts";

/** At most `limit` requests in any interval of `windowUs`. */
export interface Rate {
  /** The maximum number of requests in a window, a positive integer. */
  readonly limit: number;
  /** The length of the window in microseconds. */
  readonly windowUs: number;
}

const UNITS_US = { MS: 1e3, SECOND: 1e6, MINUTE: 60e6, HOUR: 3600e6, DAY: 86_400e6 } as const;
type Unit = keyof typeof UNITS_US;

const SPELLINGS = new Map<string, Unit>([
  ...spell("MS", "ms", "millisecond", "milliseconds"),
  ...spell("SECOND", "s", "sec", "second", "seconds"),
  ...spell("MINUTE", "m", "min", "minute", "minutes"),
  ...spell("HOUR", "h", "hour", "hours"),
  ...spell("DAY", "d", "day", "days"),
]);

/** A missing value is inherited or has a default, so the absence of a limit needs a word of its own. */
export const NO_LIMIT = "none";

/** Larger numbers are typing errors, and integer microseconds would no longer be exact. */
const MAX_LIMIT = 1_000_000_000;
/** Costs may be sums of money in millionths. */
export const MAX_COST_LIMIT = 1_000_000_000_000;
const MAX_WINDOW_US = 366 * UNITS_US.DAY;
const MAX_TEXT_CHARS = 1000;

const FORM = 'write <count>/<unit>, such as 10/SECOND, 1/3SECOND or 300/min, and join windows with "+"';

/**
 * Parses one text of one or more windows, or several such texts. Throws a RangeError that names the input.
 * `maxLimit` is the largest count.
 */
export function parseRates(texts: string | readonly string[], maxLimit = MAX_LIMIT): readonly Rate[] {
  const list = typeof texts === "string" ? [texts] : texts;
  if (list.length === 0) throw new RangeError(`no rate given: the list is empty; ${FORM}`);
  return list.flatMap(text => {
    if (text.length > MAX_TEXT_CHARS)
      throw notARate(text, `it has ${text.length} characters, at most ${MAX_TEXT_CHARS} are allowed`);
    return text.split("+").map(part => parseWindow(part.trim(), text, maxLimit));
  });
}

/**
 * The milliseconds of a duration: `90s`, `5min`, `2h`, `1 day`, with the units of rates; seconds if it has no unit.
 * Undefined for any other text.
 */
export function parseDurationMs(text: string): number | undefined {
  const [, count, word = ""] = /^(\d{1,12}(?:\.\d{1,6})?) ?([a-z]{0,12})$/i.exec(text.trim()) ?? [];
  const unit = SPELLINGS.get(word === "" ? "s" : word.toLowerCase());
  return count === undefined || unit === undefined ? undefined : (Number(count) * UNITS_US[unit]) / 1000;
}

/** The shortest text that `parseRates` parses to the same windows. */
export function formatRates(rates: readonly Rate[]): string {
  return rates.map(formatRate).join("+");
}

function formatRate({ limit, windowUs }: Rate): string {
  const units = Object.entries(UNITS_US).reverse();
  const [unit, unitUs] = units.find(([, us]) => windowUs % us === 0) ?? ["MS", UNITS_US.MS];
  const count = windowUs / unitUs;
  return `${limit}/${count === 1 ? "" : count}${unit}`;
}

/**
 * Parses `ols:4/second;bioportal:2/second`, a list of names and rates; `none` is an empty list of rates. Throws a
 * RangeError as `parseRates` does.
 */
export function parseRateMap(text: string): ReadonlyMap<string, readonly Rate[]> {
  const map = new Map<string, readonly Rate[]>();
  for (const entry of text.split(";")) {
    if (entry.trim() === "") continue;
    const colon = entry.indexOf(":");
    const name = entry.slice(0, colon).trim();
    if (colon < 0 || name === "") {
      throw new RangeError(`${quote(entry)} is not <name>:<rate>; write for example ols:4/second;bioportal:2/second`);
    }
    if (map.has(name)) throw new RangeError(`duplicate name ${quote(name)} in ${quote(text)}`);
    const rates = entry.slice(colon + 1).trim();
    map.set(name, rates === NO_LIMIT ? [] : parseRates(rates));
  }
  return map;
}

function parseWindow(part: string, input: string, maxLimit: number): Rate {
  const [, count, multiple, word = ""] = /^(\d{1,13})\/(\d{0,11})([a-z]{1,12})$/i.exec(part) ?? [];
  if (count === undefined) {
    const text = part === input ? quote(input) : `${quote(part)} in ${quote(input)}`;
    throw new RangeError(`${text} is not a rate; ${FORM}`);
  }
  const unit = SPELLINGS.get(word.toLowerCase());
  if (unit === undefined) {
    throw notARate(input, `unknown time unit ${quote(word)} (expected ms, second, minute, hour or day)`);
  }
  const limit = Number(count);
  const windowUs = (multiple ? Number(multiple) : 1) * UNITS_US[unit];
  if (limit < 1 || limit > maxLimit) throw notARate(input, `the count must be from 1 to ${maxLimit}`);
  if (windowUs <= 0 || windowUs > MAX_WINDOW_US) throw notARate(input, "the window must be from 1 ms to 366 days");
  return { limit, windowUs };
}

function notARate(text: string, problem: string): RangeError {
  return new RangeError(`${quote(text)} is not a rate: ${problem}; ${FORM}`);
}

function spell(unit: Unit, ...words: readonly string[]): readonly (readonly [string, Unit])[] {
  return words.map(word => [word, unit] as const);
}
