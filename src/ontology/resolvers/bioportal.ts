import type { TargetFormat } from "../format.ts";
import { found, JSON_ONLY, type OntologyResolver, readJson, refused, textAt, valueAt } from "../resolver.ts";

const API = "https://data.bioontology.org/ontologies/";
const LANGUAGES: Readonly<Record<string, TargetFormat>> = { OWL: "owl", OBO: "obo", SKOS: "owl" };

/** BioPortal: a key is needed for everything, and some licences permit no download. */
export const bioportal: OntologyResolver = {
  name: "bioportal",
  service: "bioportal",
  extras: { acronym: "its name there, where that is not the id in capitals" },
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
    if (language === undefined) return refused("no-file", `BioPortal has no submission of ${id}`);
    if (language === "UMLS") {
      return refused("licence", `${id} is of the UMLS: its licence permits no download from BioPortal`);
    }
    const submission = valueAt(json.value, "submissionId");
    const part = typeof submission === "number" ? `submissions/${submission}/download` : "download";
    return found({
      // Made here and not taken from links.download, which may carry somebody's key.
      url: `${API}${acronymOf(id, extras)}/${part}`,
      format: LANGUAGES[language],
      version: textAt(json.value, "version") ?? textAt(json.value, "released"),
      licence: textAt(json.value, "hasLicense"),
    });
  },
};

/** What a status of BioPortal means, for its answers and for its files alike; undefined where nothing is special. */
export function bioportalRefusal(status: number | undefined, id: string) {
  if (status === 401) return { reason: "key", message: "BioPortal does not accept BIOPORTAL_API_KEY" } as const;
  if (status === 403) {
    return { reason: "licence", message: `the licence of ${id} permits no download from BioPortal` } as const;
  }
  if (status === 422) return { reason: "unknown", message: `BioPortal knows no ${id}` } as const;
  return undefined;
}

function acronymOf(id: string, extras: Readonly<Record<string, string>>): string {
  return encodeURIComponent(extras["acronym"] ?? id.toUpperCase());
}
