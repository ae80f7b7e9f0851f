import type { TargetFormat } from "../format.ts";
import { baseOf, listAt, readJson, textAt, valueAt } from "../registry-json.ts";
import { found, JSON_ONLY, type OntologyResolver, refused, type Source } from "../resolver.ts";

const BASE = "https://data.bioontology.org";
/** A map, because the keys come from the service: an object also has the names of its prototype. */
const LANGUAGES: ReadonlyMap<string, TargetFormat> = new Map([
  ["OWL", "owl"],
  ["OBO", "obo"],
  ["SKOS", "owl"],
]);

/** BioPortal requires an API key for every request, and some licences do not permit the download. */
export const bioportal: OntologyResolver = {
  name: "bioportal",
  service: "bioportal",
  extras: {
    acronym: "acronym at BioPortal, if it differs from the upper-case id",
    base: "URL of another OntoPortal, such as https://data.agroportal.lirmm.fr; configure its key as an identity",
  },
  requires: [],
  keyVariable: "BIOPORTAL_API_KEY",
  requestFor: source => ({
    url: `${apiOf(source)}${source.version === undefined ? "/latest_submission" : "/submissions"}?include=all`,
    accept: JSON_ONLY,
  }),
  versions: {
    requestFor: source => ({
      url: `${apiOf(source)}/submissions?include=submissionId,version,released`,
      accept: JSON_ONLY,
    }),
    read(response) {
      const json = readJson("BioPortal", response);
      if (!("value" in json)) return json;
      return listAt(json, "value").flatMap(submission => {
        const version = textAt(submission, "version") ?? textAt(submission, "released")?.slice(0, 10);
        return version === undefined ? [] : [{ version, url: `submission ${valueAt(submission, "submissionId")}` }];
      });
    },
  },
  read(source, response) {
    const { id, version } = source;
    const refusal = bioportalRefusal(response?.status, id);
    if (refusal !== undefined) return refused(refusal.reason, refusal.message);
    const json = readJson("BioPortal", response);
    if (!("value" in json)) return json;
    const value = version === undefined ? json.value : listAt(json, "value").find(entry => isVersion(entry, version));
    if (value === undefined) return refused("no-file", `no version ${version} of ${id} at BioPortal`);
    const language = textAt(value, "hasOntologyLanguage");
    if (language === undefined) return refused("no-file", `no submission of ${id} at BioPortal`);
    if (language === "UMLS") {
      return refused("licence", `${id} is part of UMLS, whose licence does not permit download from BioPortal`);
    }
    const submission = valueAt(value, "submissionId");
    const part = typeof submission === "number" ? `submissions/${submission}/download` : "download";
    return found({
      // Not links.download, which can contain an API key.
      url: `${apiOf(source)}/${part}`,
      format: LANGUAGES.get(language),
      version: textAt(value, "version") ?? textAt(value, "released"),
      licence: textAt(value, "hasLicense"),
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

function apiOf({ id, extras }: Source): string {
  return `${baseOf(extras, BASE)}/ontologies/${encodeURIComponent(extras["acronym"] ?? id.toUpperCase())}`;
}

function isVersion(submission: unknown, version: string): boolean {
  return [textAt(submission, "version"), textAt(submission, "released")?.slice(0, 10)].includes(version);
}
