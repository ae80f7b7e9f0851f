/** How names are put into addresses. */

/** Old DOIs hold `<>();:#?`; slashes stay, because services want them so. */
export function inPath(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}

/** As a phrase in the query languages that descend from Lucene. */
export function phrase(name: string): string {
  return `"${name.replace(/["\\]/g, "\\$&")}"`;
}

export function address(base: string, query: Readonly<Record<string, string>> = {}): string {
  const asked = Object.entries(query).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  );
  return asked.length === 0 ? base : `${base}?${asked.join("&")}`;
}
