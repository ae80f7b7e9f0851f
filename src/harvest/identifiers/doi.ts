import { percentDecoded } from "./web-url.ts";

/** ISO 26324 sets no bound; the longest that are registered have a few hundred characters. */
const DOI_CHARS_MAX = 1000;
const DOI = /^10\.\d{4,9}(?:\.\d+)*\/[^\s\p{Cc}\p{Cs}\ufffd]+$/u;

/** bioRxiv and medRxiv, dated or numbered; other works under 10.1101 belong to a press and have no versions. */
const PREPRINT =
  /^(10\.(?:1101|64898)\/(?:\d{4}\.\d{2}\.\d{2}\.)?\d{5,8})(?:(?:v\d{1,3}(?![\da-z])|\.full|\.abstract).*)?$/;

/**
 * The one spelling of a DOI, which may be percent-encoded, in any case, and with the punctuation of a sentence or a
 * bracket behind it; undefined for what is none. Case is folded for ASCII only, as the DOI system does.
 */
export function canonicalDoi(text: string): string | undefined {
  const plain = text.length <= 3 * DOI_CHARS_MAX ? percentDecoded(text.trim()) : undefined;
  if (plain === undefined) return undefined;
  const trimmed = withoutTrailingPunctuation(plain).replace(/[A-Z]+/g, letters => letters.toLowerCase());
  if (trimmed.length > DOI_CHARS_MAX || !DOI.test(trimmed)) return undefined;
  // DOIs become paths in the questions to services, and these would climb out of theirs.
  if (/\/\.{1,2}(?:\/|$)/.test(trimmed)) return undefined;
  // The DOI of a preprint names all its versions; `v2.full.pdf` comes from the address of one of them.
  return PREPRINT.exec(trimmed)?.[1] ?? trimmed;
}

/** Publishers hang these on a DOI in their addresses: `/doi/10.1002/x/full`, `/pdf/10.1007/x.pdf`. */
const PAGE_SUFFIX =
  /(?:\/(?:full(?:text)?|e?pdf|html|abstract|abs|meta|references|summary|xml|pdfft|download)|\.pdf)$/i;

/** The DOI inside the path or the query of an address; undefined where there is none. */
export function doiInUrl(url: URL): string | undefined {
  const plain = percentDecoded(url.pathname) ?? "";
  const start = /\/(?=10\.\d{4,9}(?:\.\d+)*\/)/.exec(plain);
  if (start !== null) return canonicalDoi(withoutPageSuffix(plain.slice(start.index + 1)));
  for (const name of ["doi", "id", "DOI"]) {
    const doi = canonicalDoi(url.searchParams.get(name) ?? "");
    if (doi !== undefined) return doi;
  }
  return undefined;
}

function withoutPageSuffix(text: string): string {
  let now = text;
  // `/full/html` and `.full.pdf` are two; a DOI that were nothing but such words would have to keep its first.
  for (let round = 0; round < 3; round += 1) {
    const next = now.replace(PAGE_SUFFIX, "");
    if (next === now || !/^[^/]+\/./.test(next)) break;
    now = next;
  }
  return now;
}

const PAIRS: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{", ">": "<" };

/** Without the slash, the punctuation and the brackets behind it that were opened before it. */
function withoutTrailingPunctuation(text: string): string {
  let end = text.length;
  for (; end > 0; end -= 1) {
    const last = text[end - 1] ?? "";
    if (/[.,;:!?'"*/\u2019\u201d\u00bb]/.test(last)) continue;
    const opening = PAIRS[last];
    if (opening === undefined || isBalanced(text.slice(0, end), opening, last)) break;
  }
  return text.slice(0, end);
}

function isBalanced(text: string, opening: string, closing: string): boolean {
  return text.split(opening).length >= text.split(closing).length;
}
