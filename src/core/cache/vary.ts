/** Which request headers select a stored response (`Vary`), and how their values are compared (RFC 9111, section 4.1). */
import { isCredentialName } from "../text/credentials.ts";
import { namesIn } from "./stored-fields.ts";

/** Lists of alternatives whose order has no meaning; preferences are given by `q`. */
const UNORDERED: ReadonlySet<string> = new Set(["accept-language", "accept-encoding", "accept-charset"]);

/** The names in `Vary`, sorted and without duplicates. May contain `*`. */
export function varyNames(vary: string | readonly string[] | undefined): readonly string[] {
  return vary === undefined ? NO_NAMES : [...new Set(namesIn(vary))].sort();
}

const NO_NAMES: readonly string[] = Object.freeze([]);

/**
 * One text for all requests that select the same variant; empty without selecting fields. It is JSON, so that an absent
 * field differs from an empty one, and a value that contains a separator is not read as two values.
 * It contains the values of the headers, also that of `Authorization`: hash it before writing it to disk.
 */
export function varyKeyOf(
  names: readonly string[],
  header: (name: string) => string | readonly string[] | undefined,
): string {
  return names.length === 0 ? "" : JSON.stringify(names.map(name => [name, comparable(name, header(name))]));
}

/**
 * The value in the form in which it is compared: spaces around the commas of a list do not count. In the lists of
 * `UNORDERED`, case and order do not count either. The order of `Accept` does, because many servers prefer the first of
 * equal types. Credentials are compared as they are.
 */
function comparable(name: string, value: string | readonly string[] | undefined): string | null {
  if (value === undefined || (typeof value !== "string" && value.length === 0)) return null;
  const text = typeof value === "string" ? value.trim() : value.map(line => line.trim()).join(", ");
  if (isCredentialName(name)) return text;
  const elements = listElements(text);
  if (!UNORDERED.has(name)) return elements.join(",");
  return elements
    .map(element => element.toLowerCase().replaceAll(/[ \t]/g, ""))
    .filter(element => element !== "")
    .sort()
    .join(",");
}

/** Splits a list at its commas, except those in quoted strings. Each element is trimmed. */
function listElements(text: string): string[] {
  if (!text.includes('"')) return text.split(",").map(element => element.trim());
  const elements: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (isQuoted && char === "\\") at += 1;
    else if (char === '"') isQuoted = !isQuoted;
    else if (char === "," && !isQuoted) {
      elements.push(text.slice(start, at).trim());
      start = at + 1;
    }
  }
  return [...elements, text.slice(start).trim()];
}
