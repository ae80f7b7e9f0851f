/**
 * Merges a JSON object into another one, as `json_patch` of SQLite does (RFC 7396): objects are merged field by field,
 * null removes a field, any other value replaces it.
 */
export function mergedJson(json: string, patch: string): string {
  return JSON.stringify(merged(JSON.parse(json), JSON.parse(patch)));
}

function merged(value: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const fields = new Map(isObject(value) ? Object.entries(value) : []);
  for (const [name, part] of Object.entries(patch)) {
    if (part === null) fields.delete(name);
    else fields.set(name, merged(fields.get(name), part));
  }
  return Object.fromEntries(fields);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
