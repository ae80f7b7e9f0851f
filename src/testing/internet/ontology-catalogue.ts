/** The ontologies of the simulated internet: their files, the URLs of the files, and the services that know them. */
import { gzipSync } from "node:zlib";
import { digest } from "./article-file.ts";
import type { StreamedBody } from "./exchange.ts";
import { completeFile, filledTo, type OntologyFormat, type OntologyPlan, ontologyFile } from "./ontology-file.ts";
import { SeededRandom } from "./seeded-random.ts";
import { makeZip } from "./zip.ts";

/** A service that lists ontologies, by its name as a resolver in `sources.yaml`. */
export type OntologyServiceName = "obo" | "ols" | "bioportal" | "bioregistry" | "lov";

/** A file of an ontology, and the redirects that lead to it. */
export interface OntologyCopy {
  /** The format of the unpacked file. */
  readonly format: OntologyFormat;
  /** How the file is compressed. */
  readonly packed: "plain" | "gz" | "zip";
  /** The URL that the services return. */
  readonly url: string;
  /**
   * The targets of the redirects from `url`, in order; the last one returns the file. Empty if there is no redirect.
   */
  readonly hops: readonly string[];
  /** Length of the file as sent. */
  readonly bytes: number;
  /** SHA-256 of the file as sent; undefined for `titan`, which is never in memory as a whole. */
  readonly sha256: string | undefined;
  /** Whether the first response is truncated. */
  readonly isTruncatedOnce: boolean;
}

/** An ontology of the simulated internet. */
export interface SimulatedOntology {
  /** In lower case: `reed`. */
  readonly id: string;
  /** The id in upper case. */
  readonly prefix: string;
  /** The title in the file. */
  readonly title: string;
  /** A date: `2026-07-31`. */
  readonly version: string;
  /** The ontology IRI in the file. */
  readonly iri: string;
  /** The version IRI in the file. */
  readonly versionIri: string;
  /** The number of terms. */
  readonly terms: number;
  /** The services that know it. */
  readonly via: readonly OntologyServiceName[];
  /** Its files. */
  readonly copies: readonly OntologyCopy[];
  /**
   * Why no file can be downloaded although a service knows the ontology: the URL is a `file:` URL, the licence forbids
   * it, the entry is obsolete, or the URL returns an HTML page. Undefined if there is a file.
   */
  readonly noFileReason: "local-file" | "licence" | "obsolete" | "html" | undefined;
  /** Whether a file can be downloaded. */
  readonly expects: "file" | "none";
}

/** The resource at a URL. */
export type OntologyResource =
  | { readonly kind: "redirect"; readonly to: string }
  /** An HTML page with status 200. */
  | { readonly kind: "html" }
  | {
      readonly kind: "file";
      readonly name: string;
      readonly format: OntologyFormat;
      readonly packed: "plain" | "gz" | "zip";
      readonly etag: string;
      readonly isTruncatedOnce: boolean;
      readonly body: () => Uint8Array | StreamedBody;
    };

export interface OntologyCatalogue {
  readonly ontologies: readonly SimulatedOntology[];
  /** Resources by URL. */
  readonly resources: ReadonlyMap<string, OntologyResource>;
}

interface OntologyFixture {
  readonly id: string;
  readonly via: readonly OntologyServiceName[];
  readonly files: readonly string[];
  /** The URLs from the first redirect to the file, by file name. */
  readonly urlsOf: (file: string) => readonly string[];
  readonly noFileReason?: SimulatedOntology["noFileReason"];
  readonly isTruncatedOnce?: boolean;
  readonly isBig?: boolean;
}

const PURL = "http://purl.obolibrary.org/obo";
const FILES = "https://files.ontologies.example";

const ONTOLOGY_FIXTURES: readonly OntologyFixture[] = [
  {
    id: "reed",
    via: ["obo", "ols", "bioregistry"],
    files: ["reed.owl", "reed.obo", "reed.json"],
    urlsOf: file => [
      `${PURL}/${file}`,
      `https://purl.obolibrary.org/obo/${file}`,
      `https://current.geneontology.org/ontology/${file}`,
    ],
  },
  {
    id: "marsh",
    via: ["obo", "ols"],
    files: ["marsh.owl", "marsh.obo"],
    urlsOf: file => [
      `${PURL}/${file}`,
      `https://github.com/marsh-ontology/marsh/releases/latest/download/${file}`,
      `https://github.com/marsh-ontology/marsh/releases/download/v2026-07-31/${file}`,
      `https://release-assets.githubusercontent.com/production/${file}?sig=a%2Bb%2F${file.length}&response-content-disposition=attachment`,
    ],
  },
  {
    id: "kelp",
    via: ["obo", "bioregistry"],
    files: ["kelp.owl"],
    urlsOf: file => [`${PURL}/${file}`, `https://raw.githubusercontent.com/kelp/kelp/master/${file}`],
  },
  {
    id: "alder",
    via: ["obo", "ols"],
    files: ["alder.owl", "alder.owl.gz", "alder.obo.gz"],
    urlsOf: file => [`${PURL}/${file}`, `http://ftp.ebi.ac.uk/pub/databases/alder/ontology/${file}`],
    isTruncatedOnce: true,
  },
  { id: "finch", via: ["ols", "bioregistry"], files: ["finch.ttl"], urlsOf: file => [`${FILES}/${file}`] },
  {
    id: "fern",
    via: ["bioregistry"],
    files: ["fern.ofn", "fern.owx", "fern.json", "fern.owl.zip"],
    urlsOf: file => [`${FILES}/${file}`],
  },
  {
    id: "otter",
    via: ["bioportal"],
    files: ["otter.owl"],
    urlsOf: () => ["https://data.bioontology.org/ontologies/OTTER/submissions/7/download"],
  },
  {
    id: "badger",
    via: ["bioportal"],
    files: ["badger.obo.zip"],
    urlsOf: () => ["https://data.bioontology.org/ontologies/BADGER/submissions/3/download"],
  },
  { id: "heron", via: ["bioportal"], files: [], urlsOf: () => [], noFileReason: "licence" },
  { id: "lichen", via: ["ols"], files: [], urlsOf: () => [], noFileReason: "local-file" },
  { id: "dusk", via: ["obo"], files: [], urlsOf: () => [], noFileReason: "obsolete" },
  { id: "sedge", via: ["obo"], files: [], urlsOf: () => [], noFileReason: "html" },
  {
    id: "moss",
    via: ["lov"],
    files: ["moss.ttl"],
    urlsOf: () => ["https://lov.linkeddata.es/dataset/lov/vocabs/moss/versions/2026-07-31.n3"],
  },
  {
    id: "titan",
    via: ["bioregistry", "ols"],
    files: ["titan.owl", "titan.obo"],
    urlsOf: file => [`${FILES}/${file}`],
    isBig: true,
  },
];

/** `bigBytes` is the approximate size of the files of `titan`. */
export function makeOntologyCatalogue(seed: number, bigBytes: number): OntologyCatalogue {
  const resources = new Map<string, OntologyResource>();
  const ontologies = ONTOLOGY_FIXTURES.map(fixture =>
    makeOntology(new SeededRandom(seed, "ontology", fixture.id), fixture, bigBytes, resources),
  );
  return { ontologies, resources };
}

function makeOntology(
  random: SeededRandom,
  fixture: OntologyFixture,
  bigBytes: number,
  resources: Map<string, OntologyResource>,
): SimulatedOntology {
  const { id, via, noFileReason } = fixture;
  const version = `2026-${String(random.between(1, 9)).padStart(2, "0")}-${random.between(10, 28)}`;
  const isObo = via.includes("obo");
  const base = isObo ? PURL : FILES.replace("https", "http");
  const plan: OntologyPlan = {
    id,
    title: `An ontology of ${id}`,
    version,
    iri: `${base}/${id}.owl`,
    versionIri: `${base}/${id}/releases/${version}/${id}.owl`,
    termBase: isObo ? `${PURL}/${id.toUpperCase()}_` : `${base}/${id}#`,
    terms: random.between(40, 900),
  };
  const copies = fixture.files.map(file => addFile(fixture, plan, file, bigBytes, resources));
  if (noFileReason === "html") resources.set(`${PURL}/${id}.owl`, { kind: "html" });
  const { title, iri, versionIri } = plan;
  const terms = fixture.isBig ? filledTo(plan, "owl", bigBytes).terms : plan.terms;
  const expects = copies.length > 0 ? "file" : "none";
  return { id, prefix: id.toUpperCase(), title, version, iri, versionIri, terms, via, copies, noFileReason, expects };
}

function addFile(
  { urlsOf, isTruncatedOnce = false, isBig = false }: OntologyFixture,
  plan: OntologyPlan,
  file: string,
  bigBytes: number,
  resources: Map<string, OntologyResource>,
): OntologyCopy {
  const [, extension = "", suffix = ""] = file.split(".");
  const format = extension as OntologyFormat;
  const packed = suffix === "gz" || suffix === "zip" ? suffix : "plain";
  const pieces = ontologyFile(isBig ? filledTo(plan, format, bigBytes) : plan, format);
  const body = () => (isBig ? pieces : pack(packed, `${plan.id}.${extension}`, completeFile(pieces)));
  const made = isBig ? undefined : body();
  const sha256 = made instanceof Uint8Array ? digest("sha256", made) : undefined;
  const etag = sha256?.slice(0, 32) ?? digest("md5", `${file} ${pieces.length}`);
  const [url = "", ...hops] = urlsOf(file);
  const urls = [url, ...hops];
  for (const [index, hopUrl] of urls.entries()) {
    const to = urls[index + 1];
    const resource: OntologyResource =
      to === undefined
        ? { kind: "file", name: file, format, packed, etag, isTruncatedOnce, body }
        : { kind: "redirect", to };
    resources.set(hopUrl, resource);
  }
  // The version IRI redirects to the same file, because the file is the latest version.
  const versioned = plan.versionIri.replace(/[^/]+$/, file);
  resources.set(versioned, { kind: "redirect", to: urls.at(-1) ?? url });
  return { format, packed, url, hops, bytes: made?.length ?? pieces.length, sha256, isTruncatedOnce };
}

function pack(how: "plain" | "gz" | "zip", name: string, content: Buffer): Buffer {
  if (how === "gz") return gzipSync(content);
  return how === "zip" ? makeZip({ [name]: content }) : content;
}
