/** The requests that a work is expected to cost, with their probabilities. Pure. */
import type { Resolver } from "../resolvers/resolver.ts";
import type { Work } from "../work.ts";

/** Requests of one kind to one host. */
export interface PlannedCall {
  readonly host: string;
  readonly path: string;
  readonly role: "metadata" | "landing" | "artifact";
  /** Expected units of the rate limit for one work: below 1 if the request is not always needed, or shared with others. */
  readonly units: number;
  /** Whether the work continues without it if the quota is spent. */
  readonly isDispensable: boolean;
}

/** How often the answer of a resolver leads to a stored file, by resolver. */
export type ResolverYields = Readonly<Record<string, number>>;

/** Shares of works, from runs over mixed lists of DOIs. The counts of a manifest replace them as it grows. */
export const TYPICAL_YIELDS: ResolverYields = {
  arxiv: 0.98,
  pmc: 0.1,
  zenodo: 0.9,
  figshare: 0.9,
  osf: 0.9,
  biorxiv: 0.9,
  openalex: 0.4,
  europe_pmc: 0.05,
  semantic_scholar: 0.03,
  crossref: 0.1,
  datacite: 0.01,
  unpaywall: 0.03,
  doaj: 0.02,
  hal: 0.02,
  core: 0.03,
  openaire: 0.02,
  landing_page: 0.15,
  wayback: 0.02,
};

/** The host of the files that a resolver finds. The files of other resolvers are at publishers and universities. */
const FILE_HOSTS: Readonly<Record<string, string>> = {
  arxiv: "arxiv.org",
  pmc: "pmc-oa-opendata.s3.amazonaws.com",
  zenodo: "zenodo.org",
  figshare: "api.figshare.com",
  osf: "osf.io",
  biorxiv: "www.biorxiv.org",
  hal: "hal.science",
  core: "core.ac.uk",
  wayback: "web.archive.org",
};

/** The share of works about which a resolver is asked, for resolvers that are not asked about all. */
const ASKED_SHARE: Readonly<Record<string, number>> = {
  // Only if Crossref does not know the DOI.
  datacite: 0.1,
};

/** Requests that follow the first one, for a work that the service knows. */
const FOLLOW_UPS: Readonly<Record<string, { readonly url: string; readonly calls: number }>> = {
  pmc: { url: "https://pmc-oa-opendata.s3.amazonaws.com/", calls: 2 },
};

/** Batches are not always full. */
const BATCH_FILL = 0.6;

/** @param order the resolvers that can be asked about the work, in their order */
export function plannedCalls(work: Work, order: readonly Resolver[], yields: ResolverYields): readonly PlannedCall[] {
  const calls: PlannedCall[] = [];
  /** The probability that no earlier resolver has led to a file, so that the next one is asked. */
  let reach = 1;
  for (const resolver of order) {
    const isDispensable = resolver.isRepository !== true;
    const share = Math.min(1, Math.max(0, yields[resolver.name] ?? 0));
    const inferred = resolver.inferred?.(work);
    const candidate = inferred?.kind === "found" ? inferred.candidates[0] : undefined;
    if (candidate !== undefined) {
      calls.push(callTo(candidate.url, "artifact", reach, false));
      reach *= 1 - share;
      continue;
    }
    const request = resolver.requestFor(work);
    if (request === undefined) continue;
    const isShared = resolver.batch?.groupOf(work) !== undefined;
    const worksPerRequest = isShared ? (resolver.batch?.maxWorks ?? 1) * BATCH_FILL : 1;
    const sent = isShared ? (resolver.batch?.requestFor([work]) ?? request) : request;
    const askedShare = reach * (ASKED_SHARE[resolver.name] ?? 1);
    calls.push(callTo(sent.url, sent.role, (askedShare * (sent.weight ?? 1)) / worksPerRequest, isDispensable));
    const followUp = FOLLOW_UPS[resolver.name];
    if (followUp !== undefined) {
      // A work with a PMCID needs no conversion: its first request already goes to this host, and one more follows.
      const isFirstThere = sent.url.startsWith(followUp.url);
      calls.push(callTo(followUp.url, "metadata", isFirstThere ? reach : reach * share * followUp.calls, false));
    }
    calls.push(callTo(`https://${FILE_HOSTS[resolver.name] ?? publisherOf(work)}/`, "artifact", reach * share, false));
    reach *= 1 - share;
  }
  return calls;
}

function callTo(url: string, role: PlannedCall["role"], units: number, isDispensable: boolean): PlannedCall {
  const { host, pathname } = new URL(url);
  return { host, path: pathname, role, units, isDispensable };
}

/** A publisher has a few prefixes and mostly one host for its files, so the prefix stands for the host. */
function publisherOf({ ids }: Work): string {
  const prefix = /^10\.[\d.]+/.exec(ids.doi ?? "")?.[0];
  return prefix === undefined ? "other-hosts.invalid" : `publisher-${prefix.replaceAll(".", "-")}.invalid`;
}

/** The name of a host in an estimate: placeholders of publishers are spelled out. */
export function hostLabel(host: string): string {
  const [, prefix] = /^publisher-10-([\d-]+)\.invalid$/.exec(host) ?? [];
  if (prefix !== undefined) return `publisher of 10.${prefix.replaceAll("-", ".")}`;
  return host === "other-hosts.invalid" ? "other hosts" : host;
}
