import { formatOfName, type TargetFormat } from "./format.ts";

/**
 * The first address that contains the version, such as `.../releases/2026-11-01/hp.owl`: later versions do not replace
 * its file. Null if no address does. An address with a query may be signed, so it is skipped.
 */
export function versionedUrl(
  addresses: readonly (string | null | undefined)[],
  version: string | undefined,
  format: TargetFormat,
): string | null {
  if (version === undefined || version.length < 3) return null;
  for (const address of addresses) {
    const url = URL.parse(address ?? "");
    const isWeb = url?.protocol === "http:" || url?.protocol === "https:";
    if (url === null || !isWeb || url.search !== "" || url.username !== "") continue;
    // The version IRI of a JSON file often names the OWL file.
    if (formatOfName(url.pathname) !== format) continue;
    const segments = url.pathname.split("/").slice(1, -1).map(decoded);
    if (segments.some(segment => segment === version || segment === `v${version}` || `v${segment}` === version)) {
      url.hash = "";
      return url.href;
    }
  }
  return null;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    if (error instanceof URIError) return segment;
    throw error;
  }
}
