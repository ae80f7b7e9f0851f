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

/** Where ontologies lie, and the permanent addresses that lead there. */
export function ontologyFiles(shelf: OntologyCatalogue): SimulatedService {
  return visit => {
    const place = placeOf(shelf, visit);
    return place === undefined ? html("404 Not Found", "<h1>404 Not Found</h1>", 404) : placeReply(visit, place);
  };
}

/** Where nothing is said of a scheme, both lead to the same. PURLs do not mind case. */
function placeOf(
  { places }: OntologyCatalogue,
  { isTls, host, path, search }: SimulatedRequest,
): OntologyResource | undefined {
  const spelt = host === "purl.obolibrary.org" ? path.toLowerCase() : path;
  const address = `${host}${spelt}${search}`;
  const schemes = isTls ? ["https", "http"] : ["http", "https"];
  return schemes.map(scheme => places.get(`${scheme}://${address}`)).find(place => place !== undefined);
}

export function placeReply(visit: SimulatedRequest, place: OntologyResource): SimulatedReply {
  if (place.kind === "redirect") return redirect(place.to);
  if (place.kind === "html") return html("Welcome", "<h1>Browse our ontologies</h1>");
  const { packed, format, etag, isTruncatedOnce } = place;
  const body = place.body();
  const type = packed === "plain" ? TYPES[format] : PACKED_TYPES[packed];
  const whole = fileReply(visit, { body, type, etag, modifiedMs: MODIFIED_MS, takesRanges: true });
  const isCut = isTruncatedOnce && visit.earlier === 0 && whole.status === 200;
  return isCut ? { ...whole, cutAtBytes: Math.floor(body.length / 2) } : whole;
}
