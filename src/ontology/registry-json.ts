/** Reads untrusted JSON of services without assuming its structure. */
import { type OntologyFinding, type RegistryResponse, refused } from "./resolver.ts";

/**
 * Parses the response of a service as JSON, or returns the refusal for a missing response, an error status or invalid
 * JSON.
 */
export function readJson(
  service: string,
  response: RegistryResponse | undefined,
): { readonly value: unknown } | OntologyFinding {
  if (response === undefined) return refused("unavailable", `no response from ${service}`);
  const { status, body } = response;
  if (status === 404) return refused("unknown", `${service} does not know the ontology`);
  if (status !== 200) return refused("unavailable", `${service} returned status ${status}`);
  try {
    return { value: JSON.parse(body) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return refused("unreadable", `${service} returned invalid JSON`);
  }
}

/** An http or https URL without credentials and fragment; undefined for other schemes, such as `file:`. */
export function webUrlWithoutCredentials(text: unknown): string | undefined {
  if (typeof text !== "string" || text.length > 4096) return undefined;
  const url = URL.parse(text.trim());
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined;
  url.username = "";
  url.password = "";
  url.hash = "";
  return url.href;
}

/** The base URL of a service: `base` in extras, or else the default. Without a slash at the end. */
export function baseOf(extras: Readonly<Record<string, string>>, defaultBase: string): string {
  const base = webUrlWithoutCredentials(extras["base"]) ?? defaultBase;
  return base.endsWith("/") ? base.slice(0, -1) : base;
}

/** The string at a path in parsed JSON; undefined if it is missing, blank or not a string. At most 512 characters. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const text = valueAt(value, ...path);
  return typeof text === "string" && text.trim() !== "" ? text.trim().slice(0, 512) : undefined;
}

/** Reads own properties only, because names from the network must not reach a prototype. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null && Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined),
    value,
  );
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const list = valueAt(value, ...path);
  return Array.isArray(list) ? list : [];
}
