import { html, redirect, type SimulatedReply, type SimulatedRequest, type SimulatedService } from "../exchange.ts";
import { fileReply } from "../file-reply.ts";
import type { OntologyCatalogue, OntologyResource } from "../ontology-catalogue.ts";

const TYPES = {
  owl: "application/rdf+xml",
  obo: "text/plain; charset=utf-8",
  json: "application/json",
  ttl: "text/turtle",
  ofn: "text/owl-functional",
  owx: "application/owl+xml",
} as const;
const PACKED_TYPES = { gz: "application/gzip", zip: "application/zip" } as const;
const MODIFIED_MS = Date.UTC(2026, 6, 31, 6);

/** Hosts of ontology files, and the permanent URLs that redirect to them. */
export function ontologyFiles(catalogue: OntologyCatalogue): SimulatedService {
  return request => {
    const resource = resourceOf(catalogue, request);
    return resource === undefined
      ? html("404 Not Found", "<h1>404 Not Found</h1>", 404)
      : resourceReply(request, resource);
  };
}

/** A resource under the other scheme is found too. PURLs ignore case. */
function resourceOf(
  { resources }: OntologyCatalogue,
  { isTls, host, path, search }: SimulatedRequest,
): OntologyResource | undefined {
  const canonicalPath = host === "purl.obolibrary.org" ? path.toLowerCase() : path;
  const address = `${host}${canonicalPath}${search}`;
  const schemes = isTls ? ["https", "http"] : ["http", "https"];
  return schemes.map(scheme => resources.get(`${scheme}://${address}`)).find(resource => resource !== undefined);
}

export function resourceReply(request: SimulatedRequest, resource: OntologyResource): SimulatedReply {
  if (resource.kind === "redirect") return redirect(resource.to);
  if (resource.kind === "html") return html("Welcome", "<h1>Browse our ontologies</h1>");
  const { packed, format, etag, isTruncatedOnce } = resource;
  const body = resource.body();
  const type = packed === "plain" ? TYPES[format] : PACKED_TYPES[packed];
  const complete = fileReply(request, { body, type, etag, modifiedMs: MODIFIED_MS, takesRanges: true });
  const isTruncated = isTruncatedOnce && request.earlierRequests === 0 && complete.status === 200;
  return isTruncated ? { ...complete, cutAtBytes: Math.floor(body.length / 2) } : complete;
}
