/**
 * A resolver turns a source into a request to its service, and the response into the URL of a file. Both functions are
 * pure: the planner and the hub send the request.
 */
import type { TargetFormat } from "./format.ts";

/** One entry of `sources` in `sources.yaml`, with the values that it inherits from `defaults`. */
export interface Source {
  /**
   * Names the folder and the entry in the lockfile, and is the ontology's name at the service unless `extras` names
   * another.
   */
  readonly id: string;
  /** `obo`, `ols`, `bioportal`, `bioregistry`, `lov`, `direct`, `skos` or `xbrl`. @default "obo" */
  readonly resolver: string;
  /** In order of preference: the first one that the service has is fetched. Empty accepts every format. */
  readonly targetFormats: readonly TargetFormat[];
  /** Further values for the resolver, such as `url` for `direct`. */
  readonly extras: Readonly<Record<string, string>>;
  /** The only version that is accepted, in short form: `2025-01-16`. @default the newest */
  readonly version?: string | undefined;
  /** The only hash that is accepted, in lower-case hexadecimal. @default any */
  readonly sha256?: string | undefined;
  /** Where a known version is looked for if its address fails, in this order: folders and https URLs. */
  readonly mirrors?: readonly string[] | undefined;
  /** Whether the files that it imports are fetched too. @default false */
  readonly imports?: boolean | undefined;
}

/** A request to a service. It contains no API key: the hub adds it for the host. */
export interface RegistryRequest {
  readonly url: string;
  readonly accept: string;
}

/** The response of a service, with any status. */
export interface RegistryResponse {
  readonly status: number;
  readonly body: string;
}

/** A file that can be fetched. */
export interface OntologyCandidate {
  readonly url: string;
  /** The format that the service or the name suggests. The bytes decide later. */
  readonly format: TargetFormat | undefined;
  readonly version: string | undefined;
  readonly licence: string | undefined;
  /** Remarks for the reader of a plan. */
  readonly notes: readonly string[];
}

/**
 * Why no file can be fetched.
 * - `unknown`: the service, or the lockfile with `--frozen`, does not have the ontology.
 * - `obsolete`: the registry marks the ontology as obsolete.
 * - `no-file`: the service knows the ontology but has no file.
 * - `no-format`: there is no file in a wanted format.
 * - `not-public`: the URL is not http or https.
 * - `licence`: the licence does not permit the download.
 * - `key`: an API key is missing or was rejected.
 * - `unreadable`: the response of the service could not be parsed.
 * - `unavailable`: no response from the service, or an error status.
 */
export type RefusalReason =
  | "unknown"
  | "obsolete"
  | "no-file"
  | "no-format"
  | "not-public"
  | "licence"
  | "key"
  | "unreadable"
  | "unavailable";

export type OntologyFinding =
  | { readonly kind: "found"; readonly candidate: OntologyCandidate }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly message: string };

/** A version that a service lists. */
export interface ListedVersion {
  /** As the service writes it: a name, a number or a date. */
  readonly version: string;
  /** The URL of its file, or the name of the version at the service. */
  readonly url: string;
}

/** The key of `extras` that every resolver accepts. */
export const MEMBER_EXTRA = { member: "name of the file in an archive with several ontologies" } as const;

export interface OntologyResolver {
  readonly name: string;
  /** The service whose rate limits apply: the first half of `service:host`. */
  readonly service: string;
  /** The valid keys of `extras`, each with a description for messages. */
  readonly extras: Readonly<Record<string, string>>;
  /** The keys of `extras` that must be present. */
  readonly requires: readonly string[];
  /** The environment variable of the API key, if the service requires one. */
  readonly keyVariable?: string | undefined;
  /** The only formats of its files. They replace the `target_formats` of the source. @default any format */
  readonly formats?: readonly TargetFormat[] | undefined;
  /** The `Accept` header for its files. @default any format */
  readonly accept?: string | undefined;
  /** The versions that the service lists, newest first. Absent if it lists none. */
  readonly versions?: {
    requestFor(source: Source): RegistryRequest;
    read(source: Source, response: RegistryResponse | undefined): readonly ListedVersion[] | OntologyFinding;
  };
  /** The request to the service; undefined if none is needed. */
  requestFor(source: Source): RegistryRequest | undefined;
  /** `response` is undefined if no request was needed, or if the service did not respond. */
  read(source: Source, response: RegistryResponse | undefined): OntologyFinding;
}

export const ANY_FORMAT = "*/*";
export const JSON_ONLY = "application/json";

export function refused(reason: RefusalReason, message: string): OntologyFinding {
  return { kind: "refused", reason, message };
}

export function found(candidate: Partial<OntologyCandidate> & Pick<OntologyCandidate, "url">): OntologyFinding {
  const { url, format, version, licence, notes = [] } = candidate;
  return { kind: "found", candidate: { url, format, version, licence, notes } };
}

/** The offer in the most preferred wanted format; the first offer if no format is wanted. */
export function chooseOffer<Offer extends { readonly format: TargetFormat | undefined }>(
  offers: readonly Offer[],
  wanted: readonly TargetFormat[],
): Offer | undefined {
  if (wanted.length === 0) return offers[0];
  for (const format of wanted) {
    const offer = offers.find(candidate => candidate.format === format);
    if (offer !== undefined) return offer;
  }
  return undefined;
}
