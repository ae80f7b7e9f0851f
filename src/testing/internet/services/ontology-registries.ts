/** Registries of ontologies: the OBO Foundry, OLS, Bioregistry and LOV. */
import { gzipSync } from "node:zlib";
import { digest } from "../article-file.ts";
import { json, reply, type SimulatedReply, type SimulatedRequest, type SimulatedService, text } from "../exchange.ts";
import { fileReply } from "../file-reply.ts";
import type { OntologyCatalogue, OntologyServiceName, SimulatedOntology } from "../ontology-catalogue.ts";
import { ontologyFiles } from "./ontology-files.ts";

const CC_BY = "https://creativecommons.org/licenses/by/4.0/";

function knownTo({ ontologies }: OntologyCatalogue, service: OntologyServiceName): readonly SimulatedOntology[] {
  return ontologies.filter(({ via }) => via.includes(service));
}

/** obofoundry.org: the complete registry as one file. */
export function oboFoundry(catalogue: OntologyCatalogue): SimulatedService {
  const registry = JSON.stringify({
    "@context": "http://obofoundry.org/registry/context.jsonld",
    ontologies: knownTo(catalogue, "obo").map(oboEntry),
  });
  return request => {
    if (request.path !== "/registry/ontologies.jsonld") return text("404 Not Found\n", 404);
    return fileReply(request, {
      body: Buffer.from(registry),
      type: "application/ld+json",
      etag: digest("md5", registry),
    });
  };
}

function oboEntry({ id, prefix, title, iri, copies, noFileReason }: SimulatedOntology) {
  const isObsolete = noFileReason === "obsolete";
  return {
    id,
    preferredPrefix: prefix,
    title,
    activity_status: isObsolete ? "inactive" : "active",
    ...(isObsolete ? { is_obsolete: true, replaced_by: "reed" } : {}),
    ontology_purl: iri,
    license: { label: "CC BY 4.0", url: CC_BY },
    products: isObsolete
      ? []
      : (copies.length > 0 ? copies.map(({ url }) => url) : [iri]).map(url => ({
          id: url.split("/").at(-1),
          ontology_purl: url,
        })),
  };
}

/** www.ebi.ac.uk/ols4: one ontology, or a paged list. It returns URLs of files but serves no file. */
export function ols(catalogue: OntologyCatalogue): SimulatedService {
  const listed = knownTo(catalogue, "ols");
  return ({ path, query }) => {
    const [, id] = /^\/ols4\/api\/ontologies\/([^/]+)\/?$/.exec(path) ?? [];
    if (id !== undefined) {
      const found = listed.find(each => each.id === id.toLowerCase());
      return found === undefined ? springError(path) : json(olsEntry(found));
    }
    if (path.replace(/\/$/, "") !== "/ols4/api/ontologies") return springError(path);
    const size = Number(query.get("size") ?? 20);
    const number = Number(query.get("page") ?? 0);
    const self = `http://www.ebi.ac.uk/ols4/api/ontologies?page=${number}&size=${size}`;
    return json({
      _embedded: { ontologies: listed.slice(number * size, (number + 1) * size).map(olsEntry) },
      _links: { self: { href: self } },
      page: { size, totalElements: listed.length, totalPages: Math.ceil(listed.length / size), number },
    });
  };
}

function springError(path: string): SimulatedReply {
  return json({ timestamp: "2026-11-16T00:00:00.000+00:00", status: 404, error: "Not Found", path }, 404);
}

function olsEntry({ id, prefix, title, version, versionIri, terms, copies, noFileReason }: SimulatedOntology) {
  // Some ontologies have a path on the service's own disk as location.
  const fileLocation = noFileReason === "local-file" ? `file:///srv/ontologies/${id}.owl` : copies[0]?.url;
  return {
    ontologyId: id,
    loaded: `${version}T01:00:00.000000000`,
    updated: `${version}T01:00:00.000000000`,
    status: "LOADED",
    message: "",
    version,
    fileHash: null,
    numberOfTerms: terms,
    numberOfProperties: 3,
    numberOfIndividuals: 0,
    config: {
      id,
      title,
      preferredPrefix: prefix,
      versionIri,
      version,
      fileLocation,
      allowDownload: false,
      isSkos: false,
      description: `${title}, made up`,
    },
    _links: { self: { href: `http://www.ebi.ac.uk/ols4/api/ontologies/${id}?lang=en` } },
  };
}

/** bioregistry.io: one prefix, with a URL for each available format. */
export function bioregistry(catalogue: OntologyCatalogue): SimulatedService {
  return ({ path }) => {
    const [, prefix = ""] = /^\/api\/registry\/([^/]+)$/.exec(path) ?? [];
    const found = knownTo(catalogue, "bioregistry").find(({ id }) => id === prefix.toLowerCase());
    if (found === undefined) return json({ detail: `Prefix not found: ${prefix}` }, 404);
    const link = (format: string) => found.copies.find(copy => copy.format === format && copy.packed === "plain")?.url;
    return json({
      prefix: found.id,
      name: found.title,
      preferred_prefix: found.prefix,
      version: found.version,
      license: "CC-BY-4.0",
      uri_format: `${found.iri}#$1`,
      download_owl: link("owl"),
      download_obo: link("obo"),
      download_json: link("json"),
      download_rdf: link("ttl"),
    });
  };
}

/** lov.linkeddata.es: vocabularies with their versions, newest first, and a dump of all. */
export function lov(catalogue: OntologyCatalogue): SimulatedService {
  const fileService = ontologyFiles(catalogue);
  return request => {
    if (request.path === "/dataset/lov/api/v2/vocabulary/info") return vocabulary(catalogue, request);
    if (request.path === "/lov.n3.gz") return reply(gzipSync("# nothing\n"), "application/gzip", 200, {});
    return fileService(request);
  };
}

function vocabulary(catalogue: OntologyCatalogue, { query }: SimulatedRequest): SimulatedReply {
  const found = knownTo(catalogue, "lov").find(({ id }) => id === query.get("vocab"));
  if (found === undefined) return text("no such vocabulary\n", 404);
  return json({
    uri: found.iri,
    nsp: `${found.iri}#`,
    prefix: found.id,
    titles: [{ value: found.title, lang: "en" }],
    versions: [
      { name: `v${found.version}`, issued: `${found.version}T00:00:00.000Z`, fileURL: found.copies[0]?.url },
      { name: "v0.1", issued: "2012-01-01T00:00:00.000Z" },
    ],
  });
}
