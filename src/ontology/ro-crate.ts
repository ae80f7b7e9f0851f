import type { OntologyManifest } from "./ontology-manifest.ts";
import type { StoredVersion } from "./ontology-store.ts";

const MEDIA_TYPES: Readonly<Partial<Record<OntologyManifest["format"], string>>> = {
  "rdf-xml": "application/rdf+xml",
  "owl-xml": "application/owl+xml",
  turtle: "text/turtle",
  trig: "application/trig",
  "n-triples": "application/n-triples",
  "n-quads": "application/n-quads",
  "json-ld": "application/ld+json",
  obographs: "application/json",
  functional: "text/owl-functional",
  manchester: "text/owl-manchester",
  obo: "text/obo",
};

/**
 * An RO-Crate 1.1 record (https://w3id.org/ro/crate/1.1) of stored files: where each came from, when, with which hash,
 * version and licence, and which pull made it. Paths are relative to the store folder.
 */
export function formatCrate(versions: readonly StoredVersion[]): string {
  const files = versions.map(({ id, folder, manifest }) => ({ path: `${id}/${folder}/${manifest.file}`, manifest }));
  const dates = files.map(({ manifest }) => manifest.fetched_at).sort();
  const graph = [
    {
      "@id": "ro-crate-metadata.json",
      "@type": "CreativeWork",
      conformsTo: { "@id": "https://w3id.org/ro/crate/1.1" },
      about: { "@id": "./" },
    },
    {
      "@id": "./",
      "@type": "Dataset",
      name: "Ontologies fetched by ontofetch",
      datePublished: dates.at(-1),
      hasPart: files.map(({ path }) => ({ "@id": path })),
      mentions: files.map(({ path }) => ({ "@id": `#pull-${path}` })),
    },
    { "@id": "#ontofetch", "@type": "SoftwareApplication", name: "ontofetch" },
    ...files.flatMap(({ path, manifest }) => [fileOf(path, manifest), actionOf(path, manifest)]),
  ];
  return `${JSON.stringify({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph }, undefined, 2)}\n`;
}

function fileOf(
  path: string,
  { facts, id, version, bytes, sha256, url, licence, format, final_url }: OntologyManifest,
) {
  return {
    "@id": path,
    "@type": "File",
    name: facts?.title ?? id,
    version,
    contentSize: String(bytes),
    encodingFormat: MEDIA_TYPES[format] ?? format,
    sha256,
    url: final_url,
    isBasedOn: { "@id": url },
    ...(licence === null ? {} : { license: licence }),
    ...(facts?.ontology_iri ? { about: { "@id": facts.ontology_iri } } : {}),
  };
}

function actionOf(path: string, { fetched_at, url }: OntologyManifest) {
  return {
    "@id": `#pull-${path}`,
    "@type": "CreateAction",
    instrument: { "@id": "#ontofetch" },
    object: { "@id": url },
    result: { "@id": path },
    endTime: fetched_at,
  };
}
