import { type Dispatcher, errors } from "undici";

type Given = Dispatcher.DispatchOptions["headers"];

/** Converts request headers into the form that the stages use: name, value, name, value; names in lower case. */
export function flatHeaders(given: Given): string[] {
  const flat: string[] = [];
  if (given === null || given === undefined) return flat;
  if (Array.isArray(given)) {
    if (given.length % 2 !== 0)
      throw new TypeError(`a header list must hold a value after each name: it has an odd length (${given.length})`);
    for (let at = 0; at + 1 < given.length; at += 2) add(flat, String(given[at]), given[at + 1]);
  } else if (Symbol.iterator in given) {
    for (const [name, value] of given) add(flat, name, value);
  } else {
    for (const name in given) if (Object.hasOwn(given, name)) add(flat, name, given[name]);
  }
  return flat;
}

/** All values of a request header, joined by commas. */
export function joinedHeader(flat: readonly string[], name: string): string | undefined {
  let joined: string | undefined;
  for (let at = 0; at < flat.length; at += 2) {
    if (flat[at] === name) joined = joined === undefined ? flat[at + 1] : `${joined}, ${flat[at + 1]}`;
  }
  return joined;
}

/** A copy in which these headers replace those of the same names. */
export function withHeaders(flat: readonly string[], fields: Readonly<Record<string, string>>): string[] {
  const kept = withoutHeaders(flat, name => Object.hasOwn(fields, name));
  for (const [name, value] of Object.entries(fields)) kept.push(name, value);
  return kept;
}

/** A copy with each header of `others` whose name `flat` does not have. */
export function withMissingHeaders(flat: readonly string[], others: readonly string[]): string[] {
  const all = [...flat];
  for (let at = 0; at + 1 < others.length; at += 2) {
    const name = others[at] as string;
    if (joinedHeader(flat, name) === undefined) all.push(name, others[at + 1] as string);
  }
  return all;
}

export function withoutHeaders(flat: readonly string[], isUnwanted: (name: string) => boolean): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const name = flat[at] as string;
    if (!isUnwanted(name)) kept.push(name, flat[at + 1] as string);
  }
  return kept;
}

/** The values of a response header, joined by commas. */
export function fieldLine(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" || value === undefined ? value : value.join(", ");
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const UNPRINTABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** Checks name and value before the request is queued: undici would refuse them only after the grant was used. */
function add(flat: string[], name: string, value: unknown): void {
  if (value === undefined) return;
  const key = LOWER_CASE.get(name) ?? lowerCase(name);
  if (!Array.isArray(value)) addOne(flat, key, value);
  else for (const one of value) addOne(flat, key, one);
}

function addOne(flat: string[], key: string, value: unknown): void {
  if (typeof value === "object" && value !== null)
    throw new TypeError(`header ${key} must be a string or number, not an object`);
  const text = value === null ? "" : `${value}`;
  if (UNPRINTABLE.test(text)) throw new TypeError(`header ${key} contains a character that is not allowed in headers`);
  if (key === "connection" || key === "content-length" || key === "host") checkConnectionField(flat, key, text);
  flat.push(key, text);
}

/**
 * Over https, undici answers no later request to an origin after one that it has refused for one of these fields (8.12).
 */
function checkConnectionField(flat: readonly string[], key: string, text: string): void {
  const isValid =
    key === "connection"
      ? text === "keep-alive" || text.split(",").every(option => TOKEN.test(option.trim()))
      : joinedHeader(flat, key) === undefined && (key === "host" || /^\d+$/.test(text));
  if (!isValid) throw new errors.InvalidArgumentError(`invalid ${key} header`);
}

/** undici refuses these names whatever their value is. */
const REFUSED: ReadonlySet<string> = new Set(["expect", "keep-alive", "transfer-encoding", "upgrade"]);

/** The names that were checked, with their form in lower case. A program uses few names, each of them many times. */
const LOWER_CASE = new Map<string, string>();
const LOWER_CASE_MAX = 512;
const LOWER_CASE_LENGTH_MAX = 64;

function lowerCase(name: string): string {
  if (!TOKEN.test(name)) throw new TypeError(`${JSON.stringify(name)} is not a valid header name`);
  const key = name.toLowerCase();
  if (REFUSED.has(key)) throw new errors.NotSupportedError(`header ${key} is not supported: undici sets it itself`);
  if (LOWER_CASE.size < LOWER_CASE_MAX && name.length <= LOWER_CASE_LENGTH_MAX) LOWER_CASE.set(name, key);
  return key;
}
