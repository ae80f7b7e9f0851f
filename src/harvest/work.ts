/** The identifiers of a work in canonical form. Resolvers add further ones. */
export interface WorkIds {
  /** Lower case, without `https://doi.org/`: `10.1234/abc`. */
  readonly doi?: string | undefined;
  /** With a version only if the user named one: `2401.00001`, `hep-th/9901001v2`. */
  readonly arxiv?: string | undefined;
  readonly pmid?: string | undefined;
  /** With its prefix: `PMC1234567`. */
  readonly pmcid?: string | undefined;
  /** `W1234567890`. */
  readonly openalex?: string | undefined;
  /** The URL that the user gave instead of an identifier. */
  readonly url?: string | undefined;
}

/** A publication whose file is wanted. */
export interface Work {
  /** Unique in the manifest: `doi:10.1234/abc`, `arxiv:2401.00001`, `url:https://…`. */
  readonly key: string;
  readonly ids: WorkIds;
  readonly title?: string | undefined;
  readonly year?: number | undefined;
}
