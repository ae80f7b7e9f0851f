import type { TargetFormat } from "../format.ts";
import { baseOf, listAt, readJson, textAt, valueAt } from "../registry-json.ts";
import { found, JSON_ONLY, type OntologyResolver, type RegistryResponse, refused, type Source } from "../resolver.ts";
import { labelOf } from "../version-label.ts";

const HOST = "data.bioontology.org";
const BASE = `https://${HOST}`;
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
    read(source, response) {
      const json = readResponse(source, response);
      if (!("value" in json)) return json;
      return listAt(json, "value").flatMap(submission => {
        const version = textAt(submission, "version") ?? textAt(submission, "released")?.slice(0, 10);
        return version === undefined ? [] : [{ version, url: `submission ${valueAt(submission, "submissionId")}` }];
      });
    },
  },
  read(source, response) {
    const { id, version } = source;
    const json = readResponse(source, response);
    if (!("value" in json)) return json;
    const value = version === undefined ? json.value : submissionOf(listAt(json, "value"), version);
    if (value === undefined) return refused("no-file", `no version ${version} of ${id} at ${serviceOf(source)}`);
    const language = textAt(value, "hasOntologyLanguage");
    if (language === undefined) return refused("no-file", `no submission of ${id} at ${serviceOf(source)}`);
    if (language === "UMLS") {
      const message = `${id} is part of UMLS, whose licence does not permit download from ${serviceOf(source)}`;
      return refused("licence", message);
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

/** The JSON of a response, or the refusal for an error status, for files and lists of versions alike. */
function readResponse(source: Source, response: RegistryResponse | undefined) {
  const refusal = bioportalRefusal(response?.status, source, apiOf(source));
  return refusal === undefined ? readJson(serviceOf(source), response) : refused(refusal.reason, refusal.message);
}

/**
 * The refusal that a status means, for the API of the service and its files alike. Undefined for other statuses, and for
 * a URL of another host, such as a mirror.
 */
export function bioportalRefusal(status: number | undefined, source: Source, url: string) {
  if (URL.parse(url)?.host !== hostOf(source)) return undefined;
  const { id } = source;
  const service = serviceOf(source);
  if (status === 401) return { reason: "key", message: keyMessage(source) } as const;
  if (status === 403) {
    return { reason: "licence", message: `the licence of ${id} does not permit download from ${service}` } as const;
  }
  if (status === 422) return { reason: "unknown", message: `unknown ontology ${id} at ${service}` } as const;
  return undefined;
}

/** Only BioPortal gets the key of the environment variable. That of another OntoPortal is an identity. */
function keyMessage(source: Source): string {
  const host = hostOf(source);
  return host === HOST
    ? "BioPortal rejected the API key in BIOPORTAL_API_KEY"
    : `${host} rejected the API key, or got none: configure the key of ${host} in identities.yaml (DOCSTOKG_IDENTITIES_YAML)`;
}

/** The name of the service in messages: with `base` in extras, its host. */
function serviceOf(source: Source): string {
  const host = hostOf(source);
  return host === HOST ? "BioPortal" : host;
}

function hostOf({ extras }: Source): string {
  return new URL(baseOf(extras, BASE)).host;
}

function apiOf({ id, extras }: Source): string {
  return `${baseOf(extras, BASE)}/ontologies/${encodeURIComponent(extras["acronym"] ?? id.toUpperCase())}`;
}

/** The submission with this version, else the one that was released on this day. */
function submissionOf(submissions: readonly unknown[], version: string): unknown {
  const wanted = labelOf(version);
  const labelled = (key: string) =>
    submissions.find(submission => {
      const text = textAt(submission, key);
      return text !== undefined && labelOf(text) === wanted;
    });
  return labelled("version") ?? labelled("released");
}
