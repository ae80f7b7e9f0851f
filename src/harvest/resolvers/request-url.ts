/** How names are put into addresses. */

/** Old DOIs hold `<>();:#?`; slashes stay, because services want them so. */
export function encodedPath(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}

/** As a phrase in the query languages that descend from Lucene. */
export function quotedPhrase(name: string): string {
  return `"${name.replace(/["\\]/g, "\\$&")}"`;
}

export function urlWithQuery(base: string, query: Readonly<Record<string, string>> = {}): string {
  const parameters = Object.entries(query).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  );
  return parameters.length === 0 ? base : `${base}?${parameters.join("&")}`;
}
