/** A service, by its name in `--resolvers` and in the policy. */
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

/** The identifiers of a work. An identifier that the work does not have is missing. */
export interface SimulatedIds {
  /** In lower case, without a prefix: `10.5555/nort.2019.100123`. */
  readonly doi?: string;
  /** Without a version: `1904.00123`. */
  readonly arxiv?: string;
  /** PubMed number. */
  readonly pmid?: string;
  /** With its prefix: `PMC9100123`. */
  readonly pmcid?: string;
  /** With its prefix: `W4000100123`. */
  readonly openalex?: string;
}

/** A URL that services return as a copy of a work. */
export interface Copy {
  /** May redirect. */
  readonly url: string;
  /** The services that return it. */
  readonly via: readonly ServiceName[];
  /** The kind that services report. The URL may return another kind. */
  readonly kind: "pdf" | "landing";
  /** Whether the URL returns the complete article, at the latest on the second request. */
  readonly isGood: boolean;
  /** The version of the article, in the terms of Unpaywall. */
  readonly version: "publishedVersion" | "acceptedVersion" | "submittedVersion";
  /** Such as `cc-by`; null if unknown. */
  readonly licence: string | null;
  /** Whether the host belongs to the publisher or to a repository. */
  readonly hostType: "publisher" | "repository";
}
