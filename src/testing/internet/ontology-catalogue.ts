/** The ontologies of the simulated internet: where their files lie, and which service knows them. */
import { gzipSync } from "node:zlib";
import { digest } from "./article-file.ts";
import type { StreamedBody } from "./exchange.ts";
import { completeFile, filledTo, type OntologyFormat, type OntologyPlan, ontologyFile } from "./ontology-file.ts";
import { SeededRandom } from "./seeded-random.ts";
import { makeZip } from "./zip.ts";

export type OntologyServiceName = "obo" | "ols" | "bioportal" | "bioregistry" | "lov";

/** A file, and the way to it. */
export interface OntologyCopy {
  readonly format: OntologyFormat;
  readonly packed: "plain" | "gz" | "zip";
  /** What the services name. */
  readonly url: string;
  /** Where the redirects from there lead, one after the other; the last is where the file lies. */
  readonly hops: readonly string[];
  readonly bytes: number;
  /** Undefined for the big one, which nobody has ever held as a whole. */
  readonly sha256: string | undefined;
  /** The first answer breaks off in the middle. */
  readonly isTruncatedOnce: boolean;
}

export interface SimulatedOntology {
  readonly id: string;
  readonly prefix: string;
  readonly title: string;
  readonly version: string;
  readonly iri: string;
  readonly versionIri: string;
  readonly terms: number;
  /** Who knows it. */
  readonly via: readonly OntologyServiceName[];
  readonly copies: readonly OntologyCopy[];
  /** Why nothing is to be had although a service knows it. */
  readonly trap: "local-file" | "licence" | "obsolete" | "html" | undefined;
  readonly expects: "file" | "none";
}

/** What lies at an address. */
export type OntologyResource =
  | { readonly kind: "redirect"; readonly to: string }
  /** A page for people, with 200. */
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
  /** By address. */
  readonly places: ReadonlyMap<string, OntologyResource>;
}

interface OntologyFixture {
  readonly id: string;
  readonly via: readonly OntologyServiceName[];
  readonly files: readonly string[];
  /** From the file's name to the addresses on the way, the last of which holds it. */
  readonly urlsOf: (file: string) => readonly string[];
  readonly trap?: SimulatedOntology["trap"];
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
  { id: "heron", via: ["bioportal"], files: [], urlsOf: () => [], trap: "licence" },
  { id: "lichen", via: ["ols"], files: [], urlsOf: () => [], trap: "local-file" },
  { id: "dusk", via: ["obo"], files: [], urlsOf: () => [], trap: "obsolete" },
  { id: "sedge", via: ["obo"], files: [], urlsOf: () => [], trap: "html" },
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

/** `bigBytes` is about how long the files of `titan` are. */
export function makeOntologyCatalogue(seed: number, bigBytes: number): OntologyCatalogue {
  const places = new Map<string, OntologyResource>();
  const ontologies = ONTOLOGY_FIXTURES.map(fixture =>
    makeOntology(new SeededRandom(seed, "ontology", fixture.id), fixture, bigBytes, places),
  );
  return { ontologies, places };
}

function makeOntology(
  random: SeededRandom,
  fixture: OntologyFixture,
  bigBytes: number,
  places: Map<string, OntologyResource>,
): SimulatedOntology {
  const { id, via, trap } = fixture;
  const version = `2026-${String(random.between(1, 9)).padStart(2, "0")}-${random.between(10, 28)}`;
  const isObo = via.includes("obo");
  const base = isObo ? PURL : `${FILES.replace("https", "http")}`;
  const plan: OntologyPlan = {
    id,
    title: `An ontology of ${id}`,
    version,
    iri: `${base}/${id}.owl`,
    versionIri: `${base}/${id}/releases/${version}/${id}.owl`,
    termBase: isObo ? `${PURL}/${id.toUpperCase()}_` : `${base}/${id}#`,
    terms: random.between(40, 900),
  };
  const copies = fixture.files.map(file => addFile(fixture, plan, file, bigBytes, places));
  if (trap === "html") places.set(`${PURL}/${id}.owl`, { kind: "html" });
  const { title, iri, versionIri } = plan;
  const terms = fixture.isBig ? filledTo(plan, "owl", bigBytes).terms : plan.terms;
  const expects = copies.length > 0 ? "file" : "none";
  return { id, prefix: id.toUpperCase(), title, version, iri, versionIri, terms, via, copies, trap, expects };
}

function addFile(
  { urlsOf, isTruncatedOnce = false, isBig = false }: OntologyFixture,
  plan: OntologyPlan,
  file: string,
  bigBytes: number,
  places: Map<string, OntologyResource>,
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
  for (const [index, stationUrl] of urls.entries()) {
    const to = urls[index + 1];
    const place: OntologyResource =
      to === undefined
        ? { kind: "file", name: file, format, packed, etag, isTruncatedOnce, body }
        : { kind: "redirect", to };
    places.set(stationUrl, place);
  }
  // The IRI of the version leads to the same file, as long as it is the latest.
  const versioned = plan.versionIri.replace(/[^/]+$/, file);
  places.set(versioned, { kind: "redirect", to: urls.at(-1) ?? url });
  return { format, packed, url, hops, bytes: made?.length ?? pieces.length, sha256, isTruncatedOnce };
}

function pack(how: "plain" | "gz" | "zip", name: string, content: Buffer): Buffer {
  if (how === "gz") return gzipSync(content);
  return how === "zip" ? makeZip(name, content) : content;
}
