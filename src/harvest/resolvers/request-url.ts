/** Puts identifiers into URLs. */

/** Old DOIs contain `<>();:#?`. Slashes are kept, because services require them. */
export function encodedPath(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}

/** A quoted phrase in Lucene query syntax. */
export function quotedPhrase(name: string): string {
  return `"${name.replace(/["\\]/g, "\\$&")}"`;
}

export function urlWithQuery(base: string, query: Readonly<Record<string, string>>): string {
  const parameters = Object.entries(query).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  );
  return `${base}?${parameters.join("&")}`;
}
