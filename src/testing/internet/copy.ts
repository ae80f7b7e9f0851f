/** As `--resolvers` and the policy write them. */
export type ServiceName =
  | "crossref"
  | "openalex"
  | "unpaywall"
  | "arxiv"
  | "pmc"
  | "europe_pmc"
  | "semantic_scholar"
  | "doaj"
  | "zenodo"
  | "figshare"
  | "osf"
  | "core"
  | "openaire"
  | "hal"
  | "biorxiv"
  | "landing_page"
  | "wayback";

export interface SimulatedIds {
  readonly doi?: string;
  readonly arxiv?: string;
  readonly pmid?: string;
  readonly pmcid?: string;
  readonly openalex?: string;
}

/** A place that some service names. */
export interface Copy {
  readonly url: string;
  /** Who names it. */
  readonly via: readonly ServiceName[];
  /** What those who name it say it is; whether that is true is another question. */
  readonly kind: "pdf" | "landing";
  /** Whether the whole article is to be had there, if need be at the second attempt. */
  readonly isGood: boolean;
  readonly version: "publishedVersion" | "acceptedVersion" | "submittedVersion";
  readonly licence: string | null;
  readonly hostType: "publisher" | "repository";
}
