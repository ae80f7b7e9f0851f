import type { OntologyStore, StoredVersion } from "./ontology-store.ts";

const CATALOG = "catalog-v001.xml";

/**
 * Writes `catalog-v001.xml` into the store. ROBOT and Protégé read it and take imports from the folder instead
 * of the network.
 */
export async function writeCatalog(store: OntologyStore, versions: readonly StoredVersion[]): Promise<void> {
  await store.writeText(CATALOG, formatCatalog(versions));
}

/** Equal versions give equal bytes: entries are sorted, paths are relative, and there is no time. */
function formatCatalog(versions: readonly StoredVersion[]): string {
  const paths = new Map<string, string>();
  for (const { id, folder, manifest } of versions) {
    const { facts, url } = manifest;
    for (const iri of [facts?.ontology_iri, facts?.version_iri, url]) {
      if (iri) paths.set(iri, `${id}/${folder}/${manifest.file}`);
    }
  }
  const entries = [...paths]
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

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
