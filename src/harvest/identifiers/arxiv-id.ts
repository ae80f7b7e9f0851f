/** The archives of old-style ids (until March 2007). */
const ARCHIVES =
  "acc-phys|adap-org|alg-geom|ao-sci|astro-ph|atom-ph|bayes-an|chao-dyn|chem-ph|cmp-lg|comp-gas|cond-mat|cs|dg-ga|" +
  "funct-an|gr-qc|hep-ex|hep-lat|hep-ph|hep-th|math|math-ph|mtrl-th|nlin|nucl-ex|nucl-th|patt-sol|physics|plasm-ph|" +
  "q-alg|q-bio|quant-ph|solv-int|stat|supr-con";
const MONTH = "\\d{2}(?:0[1-9]|1[0-2])";
const NEW_STYLE = new RegExp(`^(${MONTH}\\.\\d{4,5})(v[1-9]\\d{0,2})?$`);
const OLD_STYLE = new RegExp(`^(${ARCHIVES})(?:\\.[a-z-]{2,})?/(${MONTH}\\d{3})(v[1-9]\\d{0,2})?$`);

/** `2401.00001v2`, `hep-th/9901001`; the subject of `math.GT/0309136` is dropped: ids are unique without it. */
export function canonicalArxivId(text: string): string | undefined {
  const id = text.trim().toLowerCase();
  const newStyle = NEW_STYLE.exec(id);
  if (newStyle !== null) return `${newStyle[1]}${newStyle[2] ?? ""}`;
  const oldStyle = OLD_STYLE.exec(id);
  return oldStyle === null ? undefined : `${oldStyle[1]}/${oldStyle[2]}${oldStyle[3] ?? ""}`;
}

export function withoutVersion(arxivId: string): string {
  return arxivId.replace(/v\d+$/, "");
}

const DOI_PREFIX = "10.48550/arxiv.";

/** arXiv registers a DOI for each paper; both identify one work. */
export function arxivIdOfDoi(doi: string): string | undefined {
  return doi.startsWith(DOI_PREFIX) ? canonicalArxivId(doi.slice(DOI_PREFIX.length)) : undefined;
}

export function doiOfArxivId(arxivId: string): string {
  return `${DOI_PREFIX}${withoutVersion(arxivId)}`;
}
