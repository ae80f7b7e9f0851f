/** What is known of a work. Each name in its canonical spelling; a work may have several, and resolvers add to them. */
export interface WorkIds {
  /** Lower case, without a resolver's address in front: `10.1234/abc`. */
  readonly doi?: string | undefined;
  /** With its version only where one was asked for: `2401.00001`, `hep-th/9901001v2`. */
  readonly arxiv?: string | undefined;
  readonly pmid?: string | undefined;
  /** With its prefix: `PMC1234567`. */
  readonly pmcid?: string | undefined;
  /** `W1234567890`. */
  readonly openalex?: string | undefined;
  /** The address that was given in place of a name. */
  readonly url?: string | undefined;
}

/** One thing to get. */
export interface Work {
  /** The name under which the manifest keeps it, one for each work: `doi:10.1234/abc`, `arxiv:2401.00001`, `url:https://…`. */
  readonly key: string;
  readonly ids: WorkIds;
  readonly title?: string | undefined;
  readonly year?: number | undefined;
}
