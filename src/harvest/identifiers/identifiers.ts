/** Parses identifiers of works in any of their spellings. */

import { sha256Of } from "../../files/file-hash.ts";
import type { Work, WorkIds, WorkMetadata } from "../work.ts";
import { arxivIdOfDoi, canonicalArxivId } from "./arxiv-id.ts";
import { canonicalDoi, doiInUrl } from "./doi.ts";
import { quotedInput } from "./quoted-input.ts";
import { withoutInvisible } from "./split-identifiers.ts";
import { canonicalWebUrl, percentDecoded } from "./web-url.ts";

/** The work that a text names, or why it names none. */
export type IdentifyResult =
  | {
      /** The work that the text identifies. */
      readonly work: Work;
    }
  | {
      /** Why the text is no identifier, and what is expected. */
      readonly message: string;
    };

/** A URL of 4096 characters, and some more for a prefix such as `url:`. */
const TOKEN_CHARS_MAX = 4200;
/** PostgreSQL cannot index a text of more than 2,704 bytes. */
const KEY_CHARS_MAX = 2500;
const LONG_KEY_CHARS = 1000;
const VALID =
  "a DOI (10.1234/abc), an arXiv id (2401.00001), pmid:12345678, PMC1234567, an OpenAlex id (W1234567890) or an http(s) URL";

/**
 * Parses one identifier. Digits alone are ambiguous: they are a PubMed id only as `pmid:12345678`, or with `digitsAre`.
 * @param digitsAre what digits alone are, known from the name of their column. @default an unknown identifier
 */
export function identify(token: string, digitsAre?: "pmid"): IdentifyResult {
  const text = unwrapped(withoutInvisible(token.slice(0, 2 * TOKEN_CHARS_MAX)));
  if (text === "") return { message: `empty identifier; expected ${VALID}` };
  if (text.length > TOKEN_CHARS_MAX)
    return { message: `${quotedInput(text)} has more than ${TOKEN_CHARS_MAX} characters; expected ${VALID}` };
  const ids = /^https?:/i.test(text) ? idsOfUrl(text) : (idsOfPrefixed(text) ?? idsOfBare(text, digitsAre));
  if (typeof ids === "string") return { message: ids };
  return ids === undefined
    ? { message: `${quotedInput(text)} is not a known identifier; ${adviceFor(text)}` }
    : { work: workOf(ids) };
}

/** A work with its key, which is its most permanent identifier. */
export function workOf(ids: WorkIds, metadata?: WorkMetadata): Work {
  const { doi, arxiv, pmcid, pmid, openalex, url } = ids;
  const key =
    (doi && `doi:${doi}`) ??
    (arxiv && `arxiv:${arxiv}`) ??
    (pmcid && `pmcid:${pmcid}`) ??
    (pmid && `pmid:${pmid}`) ??
    (openalex && `openalex:${openalex}`) ??
    urlKey(url ?? "");
  return { key, ids, ...(metadata === undefined ? {} : { metadata }) };
}

/** The key of a work that only has a URL. The end of a long URL is replaced by a hash. */
export function urlKey(url: string): string {
  const key = `url:${url}`;
  return key.length <= KEY_CHARS_MAX ? key : `${key.slice(0, LONG_KEY_CHARS)}~${sha256Of(url).slice(0, 32)}`;
}

/** Removes a query or an anchor only if it looks like one: a DOI may contain `#` and `?`, and old ones end in `#`. */
const DOI_ORG_URL = /^https?:\/\/(?:www\.|dx\.)?doi\.org\/(.*?)(?:\?[\w-]+=.*|#\w.*)?$/is;

/** The identifiers in a URL, or the URL itself if there are none. A string is an error message. */
export function idsOfUrl(text: string): WorkIds | string {
  const canonical = canonicalWebUrl(text);
  const url = canonical === undefined ? null : URL.parse(canonical);
  if (canonical === undefined || url === null) return urlProblem(text);
  const isDoiOrg = /^(?:www\.|dx\.)?doi\.org$/.test(url.hostname);
  // Matches the text, because parsing a URL changes some characters of a DOI. `http:doi.org/10.1234/abc` has this host
  // too, but no `//`: it is an error.
  const doi = isDoiOrg ? (DOI_ORG_URL.exec(text.trim())?.[1] ?? "") : undefined;
  if (doi !== undefined)
    return idsOfDoi(doi) ?? `${quotedInput(text)} contains no DOI; expected https://doi.org/10.1234/abc`;
  const host = url.hostname.replace(/^www\./, "");
  const path = percentDecoded(url.pathname) ?? url.pathname;
  return idsAtHost(host, path) ?? withUrl(idsOfDoi(doiInUrl(url) ?? ""), canonical);
}

/** Identifiers in the URLs of arXiv, PubMed, PMC, Europe PMC and OpenAlex. */
function idsAtHost(host: string, path: string): WorkIds | undefined {
  if (/^(?:export\.)?arxiv\.org$/.test(host)) {
    const id = canonicalArxivId(/^\/(?:abs|pdf|html|format|ps|src|e-print)\/(.+?)(?:\.pdf)?\/?$/.exec(path)?.[1] ?? "");
    return id === undefined ? undefined : { arxiv: id };
  }
  if (/^(?:pubmed\.|pmc\.)?ncbi\.nlm\.nih\.gov$|^europepmc\.org$/.test(host)) {
    // OpenAlex omits the prefix PMC: /pmc/articles/4234579.
    const [, letters, digits] = /\/(?:articles?|pmc)\/(PMC)?(\d+)(?:\.\d+)?(?:\/|$)/i.exec(path) ?? [];
    const isPmc = letters !== undefined || host.startsWith("pmc.") || path.startsWith("/pmc/articles/");
    const pmcid = isPmc ? pmcidOf(`PMC${digits ?? ""}`) : undefined;
    if (pmcid !== undefined) return { pmcid };
    const pmid = pmidOf(
      /^\/(?:pubmed\/|articles?\/med\/|abstract\/med\/|pmc\/articles\/pmid\/|articles\/pmid\/)?(\d+)\/?$/i.exec(
        path,
      )?.[1] ?? "",
    );
    return pmid === undefined ? undefined : { pmid };
  }
  if (/^(?:api\.)?openalex\.org$/.test(host)) {
    const openalex = openalexOf(/^\/(?:works\/)?(w\d+)\/?$/i.exec(path)?.[1] ?? "");
    return openalex === undefined ? undefined : { openalex };
  }
  return undefined;
}

/** Keeps the URL beside a DOI found in it: the DOI is a guess, and the page may have a copy. */
function withUrl(ids: WorkIds | undefined, url: string): WorkIds {
  return ids === undefined ? { url } : { ...ids, url };
}

function idsOfPrefixed(text: string): WorkIds | string | undefined {
  const prefixed = /^(doi|arxiv|pmid|pmcid|openalex|url|info)[:\s]\s*(.*)$/is.exec(text);
  if (prefixed === null) return undefined;
  const [, prefix = "", rest = ""] = prefixed;
  if (/^https?:/i.test(rest)) return idsOfUrl(rest);
  if (prefix.toLowerCase() === "info") return idsOfDoi(/^doi\/(.*)$/is.exec(rest)?.[1] ?? "");
  return PARSERS[prefix.toLowerCase()]?.(rest);
}

const PARSERS: Readonly<Record<string, (text: string) => WorkIds | undefined>> = {
  doi: idsOfDoi,
  arxiv: text => idsNamed("arxiv", canonicalArxivId(unpunctuated(text.replace(/\s*\[[\w.-]+\]$/, "")))),
  pmid: text => idsNamed("pmid", pmidOf(unpunctuated(text))),
  pmcid: text => idsNamed("pmcid", pmcidOf(unpunctuated(text)) ?? pmcidOf(`PMC${unpunctuated(text)}`)),
  openalex: text => idsNamed("openalex", openalexOf(unpunctuated(text))),
};

function idsOfBare(text: string, digitsAre: "pmid" | undefined): WorkIds | string | undefined {
  // `doi.org/10.1234/abc` without a scheme, as in print.
  if (/^(?:www\.|dx\.)?(?:doi|arxiv)\.org\//i.test(text)) return idsOfUrl(`https://${text}`);
  const word = unpunctuated(text);
  return (
    idsOfDoi(text) ??
    idsNamed("arxiv", canonicalArxivId(word)) ??
    idsNamed("pmcid", pmcidOf(word)) ??
    idsNamed("openalex", openalexOf(word)) ??
    (digitsAre === "pmid" ? idsNamed("pmid", pmidOf(word)) : undefined)
  );
}

export function idsOfDoi(text: string): WorkIds | undefined {
  const doi = canonicalDoi(text);
  const arxiv = doi === undefined ? undefined : arxivIdOfDoi(doi);
  return arxiv === undefined ? idsNamed("doi", doi) : { arxiv };
}

export function pmcidOf(text: string): string | undefined {
  const digits = /^PMC0*([1-9]\d{0,9})(?:\.\d+)?$/i.exec(text)?.[1];
  return digits === undefined ? undefined : `PMC${digits}`;
}

/** Programs for tables write a column of numbers with gaps as fractions: `12345678.0`. */
export function pmidOf(text: string): string | undefined {
  return /^0*([1-9]\d{0,8})(?:\.0)?$/.exec(text)?.[1];
}

export function openalexOf(text: string): string | undefined {
  return /^W[1-9]\d{0,11}$/i.test(text) ? text.toUpperCase() : undefined;
}

function idsNamed(name: keyof WorkIds, id: string | undefined): WorkIds | undefined {
  return id === undefined ? undefined : { [name]: id };
}

/** Without brackets or quotes around the text: `<10.1234/abc>,`. */
function unwrapped(text: string): string {
  const inner = /^(?:\((.*)\)|<(.*)>|\[(.*)\]|\{(.*)\}|"(.*)"|'(.*)'|\u201c(.*)\u201d)[.,;:]?$/s.exec(text);
  return (
    inner
      ?.slice(1)
      .find(part => part !== undefined)
      ?.trim() ?? text
  );
}

function unpunctuated(text: string): string {
  return text.trim().replace(/[.,;:!?'")\]}>]+$/, "");
}

function urlProblem(text: string): string {
  const url = URL.parse(text);
  if (url !== null && (url.username !== "" || url.password !== ""))
    return `the URL for ${url.host} contains a user name or password; remove them`;
  return `${quotedInput(text)} is not a valid http(s) URL; expected ${VALID}`;
}

function adviceFor(text: string): string {
  if (/^\d+$/.test(text)) return `for a PubMed id, write pmid:${text.slice(0, 12)}`;
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text) || /^(?:file|javascript|data|ftp):/i.test(text))
    return "only http and https URLs are supported";
  return `expected ${VALID}`;
}
