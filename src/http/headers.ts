import type { Dispatcher } from "undici";

type Given = Dispatcher.DispatchOptions["headers"];

/** Request fields in the one form that stages know: name, value, name, value; names in lower case. */
export function flatHeaders(given: Given): string[] {
  const flat: string[] = [];
  if (given === null || given === undefined) return flat;
  if (Array.isArray(given)) {
    if (given.length % 2 !== 0) throw new TypeError("a list of header fields must hold a value for each name");
    for (let at = 0; at + 1 < given.length; at += 2) add(flat, String(given[at]), given[at + 1]);
  } else if (Symbol.iterator in given) {
    for (const [name, value] of given) add(flat, name, value);
  } else {
    for (const name in given) if (Object.hasOwn(given, name)) add(flat, name, given[name]);
  }
  return flat;
}

/** All values of a field, as one line. */
export function joinedHeader(flat: readonly string[], name: string): string | undefined {
  let joined: string | undefined;
  for (let at = 0; at < flat.length; at += 2) {
    if (flat[at] === name) joined = joined === undefined ? flat[at + 1] : `${joined}, ${flat[at + 1]}`;
  }
  return joined;
}

/** A copy with these fields, and without others of the same names. */
export function withHeaders(flat: readonly string[], fields: Readonly<Record<string, string>>): string[] {
  const kept = withoutHeaders(flat, name => Object.hasOwn(fields, name));
  for (const [name, value] of Object.entries(fields)) kept.push(name, value);
  return kept;
}

export function withoutHeaders(flat: readonly string[], isUnwanted: (name: string) => boolean): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const name = flat[at] as string;
    if (!isUnwanted(name)) kept.push(name, flat[at + 1] as string);
  }
  return kept;
}

/** A response field as one line. */
export function fieldLine(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" || value === undefined ? value : value.join(", ");
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const UNPRINTABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** Checked here and not only on the wire, which would have made room for the host by then. */
function add(flat: string[], name: string, value: unknown): void {
  if (value === undefined) return;
  if (!TOKEN.test(name)) throw new TypeError(`${JSON.stringify(name)} is no name of a header field`);
  const key = name.toLowerCase();
  for (const one of Array.isArray(value) ? value : [value]) {
    const text = one === null ? "" : `${one}`;
    if (typeof one === "object" && one !== null) throw new TypeError(`header ${key} must be text, not an object`);
    if (UNPRINTABLE.test(text)) throw new TypeError(`header ${key} holds characters that no header may`);
    flat.push(key, text);
  }
}
