import { json, type SimulatedReply, type SimulatedRequest, type SimulatedService, text } from "../exchange.ts";
import type { OntologyCatalogue, SimulatedOntology } from "../ontology-catalogue.ts";
import { resourceReply } from "./ontology-files.ts";

/** data.bioontology.org: submissions and their files. Requires an API key; some licences forbid the download. */
export function bioportal(catalogue: OntologyCatalogue): SimulatedService {
  return request => {
    if (!hasKey(request))
      return json(
        {
          status: 401,
          error: "You must provide an API Key either using the query parameter `apikey` or the `Authorization` header",
        },
        401,
      );
    const [, acronym = "", rest = ""] = /^\/ontologies\/([^/]+)(\/.*)?$/.exec(request.path) ?? [];
    const found = catalogue.ontologies.find(({ prefix, via }) => prefix === acronym && via.includes("bioportal"));
    if (found === undefined) return json({ errors: [`Ontology ${acronym} not found`], status: 422 }, 422);
    if (rest === "") return json(ontology(found));
    if (rest === "/latest_submission") return json(submission(found));
    if (rest === "/download" || rest === `/submissions/${numberOf(found)}/download`)
      return download(catalogue, request, found);
    return json({ errors: ["Not found"], status: 404 }, 404);
  };
}

function hasKey({ query, headers }: SimulatedRequest): boolean {
  return query.get("apikey") !== null || /^apikey token=\S/.test(headers["authorization"] ?? "");
}

function numberOf({ copies }: SimulatedOntology): number {
  return Number(/\/submissions\/(\d+)\//.exec(copies[0]?.url ?? "")?.[1] ?? 1);
}

function download(
  catalogue: OntologyCatalogue,
  request: SimulatedRequest,
  { copies, noFileReason }: SimulatedOntology,
): SimulatedReply {
  if (noFileReason === "licence") return text("License restrictions on download\n", 403);
  const format = request.query.get("download_format");
  if (format !== null && format !== "csv" && format !== "rdf")
    return json({ errors: ["Invalid download format"], status: 400 }, 400);
  const resource = catalogue.resources.get(copies[0]?.url ?? "");
  if (resource?.kind !== "file")
    return json({ errors: ["There is no latest submission loaded for download"], status: 404 }, 404);
  const file = resourceReply(request, resource);
  return {
    ...file,
    headers: {
      ...file.headers,
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename="${resource.name}"`,
    },
  };
}

function ontology({ prefix, title, noFileReason }: SimulatedOntology) {
  return {
    acronym: prefix,
    name: title,
    viewingRestriction: noFileReason === "licence" ? "licensed" : "public",
    "@id": `https://data.bioontology.org/ontologies/${prefix}`,
    links: { latest_submission: `https://data.bioontology.org/ontologies/${prefix}/latest_submission` },
  };
}

function submission(found: SimulatedOntology) {
  const { prefix, version, copies } = found;
  const at = `https://data.bioontology.org/ontologies/${prefix}`;
  return {
    submissionId: numberOf(found),
    version,
    released: `${version}T00:00:00.000-07:00`,
    hasOntologyLanguage: copies[0]?.format === "obo" ? "OBO" : "OWL",
    ontology: ontology(found),
    "@id": `${at}/submissions/${numberOf(found)}`,
    links: { download: `${at}/submissions/${numberOf(found)}/download`, ontology: at },
  };
}
