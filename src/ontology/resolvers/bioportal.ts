import type { TargetFormat } from "../format.ts";
import { readJson, textAt, valueAt } from "../registry-json.ts";
import { found, JSON_ONLY, type OntologyResolver, refused } from "../resolver.ts";

const API = "https://data.bioontology.org/ontologies/";
const LANGUAGES: Readonly<Record<string, TargetFormat>> = { OWL: "owl", OBO: "obo", SKOS: "owl" };

/** BioPortal requires an API key for every request, and some licences do not permit the download. */
export const bioportal: OntologyResolver = {
  name: "bioportal",
  service: "bioportal",
  extras: { acronym: "acronym at BioPortal, if it differs from the upper-case id" },
  requires: [],
  keyVariable: "BIOPORTAL_API_KEY",
  requestFor: ({ id, extras }) => ({
    url: `${API}${acronymOf(id, extras)}/latest_submission?include=all`,
    accept: JSON_ONLY,
  }),
  read({ id, extras }, response) {
    const refusal = bioportalRefusal(response?.status, id);
    if (refusal !== undefined) return refused(refusal.reason, refusal.message);
    const json = readJson("BioPortal", response);
    if (!("value" in json)) return json;
    const language = textAt(json.value, "hasOntologyLanguage");
    if (language === undefined) return refused("no-file", `no submission of ${id} at BioPortal`);
    if (language === "UMLS") {
      return refused("licence", `${id} is part of UMLS, whose licence does not permit download from BioPortal`);
    }
    const submission = valueAt(json.value, "submissionId");
    const part = typeof submission === "number" ? `submissions/${submission}/download` : "download";
    return found({
      // Not links.download, which can contain an API key.
      url: `${API}${acronymOf(id, extras)}/${part}`,
      format: LANGUAGES[language],
      version: textAt(json.value, "version") ?? textAt(json.value, "released"),
      licence: textAt(json.value, "hasLicense"),
    });
  },
};

/** The refusal that a status of BioPortal means, for its API and its files alike; undefined for other statuses. */
export function bioportalRefusal(status: number | undefined, id: string) {
  if (status === 401) return { reason: "key", message: "BioPortal rejected the API key in BIOPORTAL_API_KEY" } as const;
  if (status === 403) {
    return { reason: "licence", message: `the licence of ${id} does not permit download from BioPortal` } as const;
  }
  if (status === 422) return { reason: "unknown", message: `unknown ontology ${id} at BioPortal` } as const;
  return undefined;
}

function acronymOf(id: string, extras: Readonly<Record<string, string>>): string {
  return encodeURIComponent(extras["acronym"] ?? id.toUpperCase());
}
