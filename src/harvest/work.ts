/** The identifiers of a work in canonical form. Resolvers add further ones. */
export interface WorkIds {
  /** Lower case, without `https://doi.org/`: `10.1234/abc`. */
  readonly doi?: string | undefined;
  /** With a version only if the user named one: `2401.00001`, `hep-th/9901001v2`. */
  readonly arxiv?: string | undefined;
  /** Digits: `12345678`. */
  readonly pmid?: string | undefined;
  /** With its prefix: `PMC1234567`. */
  readonly pmcid?: string | undefined;
  /** `W1234567890`. */
  readonly openalex?: string | undefined;
  /** The URL that the user gave. Also present if a DOI was found in it. */
  readonly url?: string | undefined;
}

/** A publication whose file is wanted. */
export interface Work {
  /** Unique in the manifest: `doi:10.1234/abc`, `arxiv:2401.00001`, `url:https://…`; a long URL ends with a hash. */
  readonly key: string;
  /** At least one. */
  readonly ids: WorkIds;
  /** What is known about the work. */
  readonly metadata?: WorkMetadata | undefined;
}

/** A person or an organisation, as a service writes the name. */
export interface WorkAuthor {
  /** The complete name, if the service does not divide it: `Ada Lovelace`. */
  readonly name?: string | undefined;
  /** Family name. */
  readonly family?: string | undefined;
  /** Given names or initials. */
  readonly given?: string | undefined;
}

/** What services know about a work. Every field may be missing. */
export interface WorkMetadata {
  /** One line, without markup. */
  readonly title?: string | undefined;
  /** At most 100. */
  readonly authors?: readonly WorkAuthor[] | undefined;
  /** Year of publication. */
  readonly year?: number | undefined;
  /** Name of the journal, series or repository. */
  readonly venue?: string | undefined;
  /** Name of the publisher. */
  readonly publisher?: string | undefined;
  /** Volume of the journal. */
  readonly volume?: string | undefined;
  /** Issue of the volume. */
  readonly issue?: string | undefined;
  /** `12-19`, or the number of the article. */
  readonly pages?: string | undefined;
  /** A type of CSL: `article-journal`, `chapter`, `book`, `paper-conference`, `thesis`, `dataset`, `article`. */
  readonly type?: string | undefined;
  /** As the service writes it: `cc-by-4.0`, a URL. */
  readonly licence?: string | undefined;
  /** `gold`, `green`, `hybrid`, `bronze`, `diamond` or `closed`, as OpenAlex and Unpaywall use the words. */
  readonly openAccess?: string | undefined;
  /** True if a service says that the work was retracted. */
  readonly isRetracted?: boolean | undefined;
  /** The agency that has registered the DOI, if a service of that agency knows the work. */
  readonly registrar?: "crossref" | "datacite" | undefined;
}

/** The resolver that each field of the metadata comes from (`list` for the user's list). */
export type MetadataSources = Readonly<Partial<Record<keyof WorkMetadata, string>>>;
