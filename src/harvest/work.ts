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
  readonly metadata?: WorkMetadata | undefined;
}

/** A person or an organisation, as a service writes the name. */
export interface WorkAuthor {
  /** The complete name, if the service does not divide it: `Ada Lovelace`. */
  readonly name?: string | undefined;
  readonly family?: string | undefined;
  readonly given?: string | undefined;
}

/** What services know about a work. Every field may be missing. */
export interface WorkMetadata {
  readonly title?: string | undefined;
  /** At most 100. */
  readonly authors?: readonly WorkAuthor[] | undefined;
  /** Of publication. */
  readonly year?: number | undefined;
  /** Name of the journal, series or repository. */
  readonly venue?: string | undefined;
  readonly publisher?: string | undefined;
  readonly volume?: string | undefined;
  readonly issue?: string | undefined;
  readonly pages?: string | undefined;
  /** A type of CSL: `article-journal`, `chapter`, `book`, `paper-conference`, `thesis`, `dataset`, `article`. */
  readonly type?: string | undefined;
  /** As the service writes it: `cc-by-4.0`, a URL. */
  readonly licence?: string | undefined;
  /** `gold`, `green`, `hybrid`, `bronze`, `diamond` or `closed`, as OpenAlex and Unpaywall use the words. */
  readonly openAccess?: string | undefined;
  readonly isRetracted?: boolean | undefined;
  /** The agency that has registered the DOI, if a service of that agency knows the work. */
  readonly registrar?: "crossref" | "datacite" | undefined;
}

/** The metadata of a work, and the resolver that each field comes from (`list` for the user's list). */
export type MetadataSources = Readonly<Partial<Record<keyof WorkMetadata, string>>>;
