import { DOI_PREFIX } from "../../core/text/doi-prefix.ts";
import { percentDecoded } from "./web-url.ts";

/** ISO 26324 sets no limit; the longest registered DOIs have a few hundred characters. */
const DOI_BYTES_MAX = 1000;
const DOI = new RegExp(String.raw`^${DOI_PREFIX}[^\s\p{Cc}\p{Cs}\ufffd]+$`, "u");
const DOI_IN_PATH = new RegExp(String.raw`\/(?=${DOI_PREFIX})`);

/** DOIs of bioRxiv and medRxiv. Other DOIs under 10.1101 are journal articles and have no versions. */
const PREPRINT =
  /^(10\.(?:1101|64898)\/(?:\d{4}\.\d{2}\.\d{2}\.)?\d{5,8})(?:(?:v\d{1,3}(?![\da-z])|\.full|\.abstract).*)?$/;

/**
 * What is written before a DOI. Forms that add `https://doi.org/` to a whole URL are common, so that it is there twice:
 * `https://doi.org/https://doi.org/10.1234/abc`.
 */
const LEAD = /^(?:https?:\/\/(?:www\.|dx\.)?doi\.org\/|(?:info:)?doi[:/])\s*/i;
const LEADS_MAX = 3;

/**
 * The canonical form of a DOI; undefined if the text is not a DOI. The text may be percent-encoded, have capital letters,
 * begin with `doi:` or the address of doi.org, and be followed by punctuation or brackets. Only ASCII letters are folded
 * to lower case, as the DOI system does.
 */
export function canonicalDoi(text: string): string | undefined {
  let plain = text.length <= 3 * DOI_BYTES_MAX ? percentDecoded(text.trim())?.trim() : undefined;
  if (plain === undefined) return undefined;
  for (let leads = 0; leads < LEADS_MAX; leads += 1) plain = plain.replace(LEAD, "");
  const trimmed = withoutTrailingPunctuation(plain).replace(/[A-Z]+/g, letters => letters.toLowerCase());
  if (Buffer.byteLength(trimmed) > DOI_BYTES_MAX || !DOI.test(trimmed)) return undefined;
  // DOIs become URL paths of services, where `..` would lead to another resource.
  if (/\/\.{1,2}(?:\/|$)/.test(trimmed)) return undefined;
  // The DOI of a preprint covers all versions; `v2.full.pdf` comes from the URL of one version.
  return PREPRINT.exec(trimmed)?.[1] ?? trimmed;
}

/** What publishers append to a DOI in their URLs: `/doi/10.1002/x/full`, `/pdf/10.1007/x.pdf`. */
const PAGE_SUFFIX =
  /(?:\/(?:full(?:text)?|e?pdf|html|abstract|abs|meta|references|summary|xml|pdfft|download)|\.pdf)$/i;

/** The DOI in the path or query of a URL; undefined if there is none. */
export function doiInUrl(url: URL): string | undefined {
  const plain = percentDecoded(url.pathname) ?? "";
  const start = DOI_IN_PATH.exec(plain);
  if (start !== null) return canonicalDoi(withoutPageSuffix(plain.slice(start.index + 1)));
  for (const name of ["doi", "id", "DOI"]) {
    const doi = canonicalDoi(url.searchParams.get(name) ?? "");
    if (doi !== undefined) return doi;
  }
  return undefined;
}

function withoutPageSuffix(text: string): string {
  let current = text;
  // `/full/html` and `.full.pdf` have two suffixes. The part after the first slash of the DOI is never removed.
  for (let round = 0; round < 3; round += 1) {
    const next = current.replace(PAGE_SUFFIX, "");
    if (next === current || !/^[^/]+\/./.test(next)) break;
    current = next;
  }
  return current;
}

/** Closing brackets, and the bracket that each closes. */
const PAIRS: ReadonlyMap<string, string> = new Map([
  [")", "("],
  ["]", "["],
  ["}", "{"],
  [">", "<"],
]);

/** Without trailing slashes and punctuation, and without closing brackets that were opened before the DOI. */
function withoutTrailingPunctuation(text: string): string {
  // How many brackets of each kind are before `end`. Counted once: a text may have thousands of them.
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  const countOf = (character: string) => counts.get(character) ?? 0;
  let end = text.length;
  for (; end > 0; end -= 1) {
    const last = text[end - 1] ?? "";
    const opening = PAIRS.get(last);
    const isUnopened = opening !== undefined && countOf(last) > countOf(opening);
    if (!isUnopened && !/[.,;:!?'"*/\u2019\u201d\u00bb]/.test(last)) break;
    if (isUnopened) counts.set(last, countOf(last) - 1);
  }
  return text.slice(0, end);
}
