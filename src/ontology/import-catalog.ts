import type { OntologyStore, StoredVersion } from "./ontology-store.ts";
import { webUrlWithoutCredentials } from "./registry-json.ts";

const CATALOG = "catalog-v001.xml";

/**
 * Writes `catalog-v001.xml` into the store. ROBOT and Protégé read it and take imports from the folder instead
 * of the network.
 */
export async function writeCatalog(store: OntologyStore, versions: readonly StoredVersion[]): Promise<void> {
  await store.writeText(CATALOG, formatCatalog(versions));
}

/** Equal versions give equal bytes: entries are sorted, paths are relative, and the file has no timestamp. */
function formatCatalog(versions: readonly StoredVersion[]): string {
  const entries = [...pathsByIri(versions)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([iri, path], index) => `  <uri id="ontofetch-${index + 1}" name="${escaped(iri)}" uri="${escaped(path)}"/>\n`,
    );
  return (
    '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n' +
    '<catalog prefer="public" xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">\n' +
    `${entries.join("")}</catalog>\n`
  );
}

/**
 * The stored file for each IRI that an import may name. The URL from which a file was requested takes precedence over the
 * IRIs in files, because several products of an ontology have the same IRI.
 */
function pathsByIri(versions: readonly StoredVersion[]): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  const add = (iri: string | null | undefined, path: string) => {
    // XML cannot contain these characters, and no IRI has them.
    if (iri && !paths.has(iri) && !/[\p{Cc}\p{Cs}\ufffe\uffff]/u.test(iri)) paths.set(iri, path);
  };
  const files = versions.map(({ id, folder, manifest }) => ({ manifest, path: `${id}/${folder}/${manifest.file}` }));
  for (const { manifest, path } of files) add(manifest.url, path);
  for (const { manifest, path } of files) add(manifest.facts?.version_iri, path);
  for (const { manifest, path } of files) add(manifest.facts?.ontology_iri, path);
  // An import may be written in another way than the URL that was requested, such as `http://host/x#`.
  for (const iri of files.flatMap(({ manifest }) => manifest.facts?.imports ?? [])) {
    const path = paths.get(webUrlWithoutCredentials(iri) ?? "");
    if (path !== undefined) add(iri, path);
  }
  return paths;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
