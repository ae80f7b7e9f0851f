/**
 * A resolver turns a source into a question for its service, and the answer into a file to fetch. Both are pure: who
 * sends the question, and when, is decided by the planner and the hub.
 */
import type { TargetFormat } from "./format.ts";

/** One ontology that is wanted, as `sources.yaml` says it, with what it inherits. */
export interface Source {
  /** Names its folder, its entry in the lockfile, and what its service is asked for unless `extras` say otherwise. */
  readonly id: string;
  readonly resolver: string;
  /** In order of preference; the first that the service has is fetched. Empty for whatever there is. */
  readonly targetFormats: readonly TargetFormat[];
  readonly extras: Readonly<Record<string, string>>;
}

/** What to ask a service. Keys are not part of it: the hub adds them for the host. */
export interface RegistryRequest {
  readonly url: string;
  readonly accept: string;
}

/** What came back, whatever its status. */
export interface RegistryResponse {
  readonly status: number;
  readonly body: string;
}

/** A file that can be fetched. */
export interface OntologyCandidate {
  readonly url: string;
  /** What the service says it is; the bytes decide. */
  readonly format: TargetFormat | undefined;
  readonly version: string | undefined;
  readonly licence: string | undefined;
  /** What the reader of a plan should know. */
  readonly notes: readonly string[];
}

export type RefusalReason =
  | "unknown"
  | "obsolete"
  | "no-file"
  | "no-format"
  | "not-public"
  | "licence"
  | "key"
  | "unreadable"
  | "trouble";

export type OntologyFinding =
  | { readonly kind: "found"; readonly candidate: OntologyCandidate }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly message: string };

export interface OntologyResolver {
  readonly name: string;
  /** Whose limits its requests are held to: the first half of `service:host`. */
  readonly service: string;
  /** What `extras` it understands, each with what it means. */
  readonly extras: Readonly<Record<string, string>>;
  /** Those without which it cannot work. */
  readonly requires: readonly string[];
  /** The variable that holds the key its service insists on. */
  readonly keyVariable?: string | undefined;
  /** What its files are asked for as. @default anything */
  readonly accept?: string | undefined;
  /** Undefined where nobody needs to be asked. */
  requestFor(source: Source): RegistryRequest | undefined;
  /** `answer` is undefined where nobody was asked, or where nobody answered. */
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

/** What all services share: who has no answer, an error or no JSON is told apart here. */
export function readJson(
  service: string,
  response: RegistryResponse | undefined,
): { readonly value: unknown } | OntologyFinding {
  if (response === undefined) return refused("trouble", `${service} did not answer`);
  const { status, body } = response;
  if (status === 404) return refused("unknown", `${service} does not know it`);
  if (status !== 200) return refused("trouble", `${service} answered ${status}`);
  try {
    return { value: JSON.parse(body) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return refused("unreadable", `${service} answered with something that is no JSON`);
  }
}

/** The first of the wanted formats that is there; of what is there the first, when nothing in particular is wanted. */
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

/** An address that can be fetched; undefined for other schemes, which may name files of somebody else's machine. */
export function webUrlWithoutCredentials(text: unknown): string | undefined {
  if (typeof text !== "string" || text.length > 4096) return undefined;
  const url = URL.parse(text.trim());
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined;
  url.username = "";
  url.password = "";
  url.hash = "";
  return url.href;
}

/** A field of what a service said, where it has the expected type; names from the network reach no prototype. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const held = valueAt(value, ...path);
  return typeof held === "string" && held.trim() !== "" ? held.trim().slice(0, 512) : undefined;
}

export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null && Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined),
    value,
  );
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const held = valueAt(value, ...path);
  return Array.isArray(held) ? held : [];
}
