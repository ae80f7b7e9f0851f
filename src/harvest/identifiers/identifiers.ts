/** From what people write to the one name of a work. */

import type { Work, WorkIds } from "../work.ts";
import { arxivIdOfDoi, canonicalArxivId } from "./arxiv-id.ts";
import { canonicalDoi, doiInUrl } from "./doi.ts";
import { canonicalWebUrl, percentDecoded, withoutUrlPassword } from "./web-url.ts";

export type IdentifyResult = { readonly work: Work } | { readonly message: string };

/** The length of the longest address, with a prefix. */
const TOKEN_CHARS_MAX = 4200;
const VALID =
  "a DOI (10.1234/abc), an arXiv id (2401.00001), pmid:12345678, PMC1234567, an OpenAlex id (W1234567890) or an http(s) address";

/**
 * Reads one name in any of its spellings. Digits alone could be a PubMed id or anything else: they are taken for one
 * only as `pmid:12345678`, or where the caller says so because the column is called that.
 */
export function identify(token: string, digitsAre?: "pmid"): IdentifyResult {
  const text = unwrapped(token.slice(0, 2 * TOKEN_CHARS_MAX).trim());
  if (text === "") return { message: `nothing to read; expected ${VALID}` };
  if (text.length > TOKEN_CHARS_MAX)
    return { message: `${shown(text)} has more than ${TOKEN_CHARS_MAX} characters; expected ${VALID}` };
  const ids = /^https?:/i.test(text) ? idsOfUrl(text) : (idsOfPrefixed(text) ?? idsOfBare(text, digitsAre));
  if (typeof ids === "string") return { message: ids };
  return ids === undefined
    ? { message: `${shown(text)} is no name we know; ${adviceFor(text)}` }
    : { work: workOf(ids) };
}

/** A work under its key: the first name it has, in the order in which names last longest. */
export function workOf(ids: WorkIds, more: Pick<Work, "title" | "year"> = {}): Work {
  const { doi, arxiv, pmcid, pmid, openalex, url } = ids;
  const key =
    (doi && `doi:${doi}`) ??
    (arxiv && `arxiv:${arxiv}`) ??
    (pmcid && `pmcid:${pmcid}`) ??
    (pmid && `pmid:${pmid}`) ??
    (openalex && `openalex:${openalex}`) ??
    `url:${url ?? ""}`;
  return { key, ids, ...more };
}

/** A DOI may hold `#` and `?`, and old ones end in `#`; only what looks like a query or an anchor is cut off. */
const DOI_ORG_URL = /^https?:\/\/(?:www\.|dx\.)?doi\.org\/(.*?)(?:\?[\w-]+=.*|#\w.*)?$/is;

/** The names that an address stands for: its own, where it leads to none that we know. A text says what is wrong. */
export function idsOfUrl(text: string): WorkIds | string {
  const address = canonicalWebUrl(text);
  const url = address === undefined ? null : URL.parse(address);
  if (address === undefined || url === null) return urlProblem(text);
  const doi = DOI_ORG_URL.exec(text.trim())?.[1];
  if (doi !== undefined) return idsOfDoi(doi) ?? `${shown(text)} holds no DOI; expected https://doi.org/10.1234/abc`;
  const host = url.hostname.replace(/^www\./, "");
  const path = percentDecoded(url.pathname) ?? url.pathname;
  return idsAtHost(host, path) ?? withUrl(idsOfDoi(doiInUrl(url) ?? ""), address);
}

/** Services whose addresses are as good as the name: arXiv, PubMed and PMC, Europe PMC, OpenAlex. */
function idsAtHost(host: string, path: string): WorkIds | undefined {
  if (/^(?:export\.)?arxiv\.org$/.test(host)) {
    const id = canonicalArxivId(/^\/(?:abs|pdf|html|format|ps|src|e-print)\/(.+?)(?:\.pdf)?\/?$/.exec(path)?.[1] ?? "");
    return id === undefined ? undefined : { arxiv: id };
  }
  if (/^(?:pubmed\.|pmc\.)?ncbi\.nlm\.nih\.gov$|^europepmc\.org$/.test(host)) {
    // OpenAlex writes them without the letters: /pmc/articles/4234579.
    const [, letters, digits] = /\/(?:articles?|pmc)\/(PMC)?(\d+)(?:\.\d+)?(?:\/|$)/i.exec(path) ?? [];
    const isPmc = letters !== undefined || host.startsWith("pmc.") || path.startsWith("/pmc/articles/");
    const pmcid = isPmc ? pmcidOf(`PMC${digits ?? ""}`) : undefined;
    if (pmcid !== undefined) return { pmcid };
    const pmid = pmidOf(/^\/(?:pubmed\/|articles?\/med\/|abstract\/med\/)?(\d+)\/?$/i.exec(path)?.[1] ?? "");
    return pmid === undefined ? undefined : { pmid };
  }
  if (/^(?:api\.)?openalex\.org$/.test(host)) {
    const openalex = openalexOf(/^\/(?:works\/)?(w\d+)\/?$/i.exec(path)?.[1] ?? "");
    return openalex === undefined ? undefined : { openalex };
  }
  return undefined;
}

/** The address is kept beside a DOI found in it: that one is a guess, and the page may be the very one that has a copy. */
function withUrl(ids: WorkIds | undefined, url: string): WorkIds {
  return ids === undefined ? { url } : { ...ids, url };
}

function idsOfPrefixed(text: string): WorkIds | string | undefined {
  const prefixed = /^(doi|arxiv|pmid|pmcid|openalex|url|info)[:\s]\s*(.*)$/is.exec(text);
  if (prefixed === null) return undefined;
  const [, prefix = "", rest = ""] = prefixed;
  if (/^https?:/i.test(rest)) return idsOfUrl(rest);
  if (prefix.toLowerCase() === "info") return idsOfDoi(/^doi\/(.*)$/is.exec(rest)?.[1] ?? "");
  return READERS[prefix.toLowerCase()]?.(rest);
}

const READERS: Readonly<Record<string, (text: string) => WorkIds | undefined>> = {
  doi: idsOfDoi,
  arxiv: text => idsNamed("arxiv", canonicalArxivId(unpunctuated(text.replace(/\s*\[[\w.-]+\]$/, "")))),
  pmid: text => idsNamed("pmid", pmidOf(unpunctuated(text))),
  pmcid: text => idsNamed("pmcid", pmcidOf(unpunctuated(text)) ?? pmcidOf(`PMC${unpunctuated(text)}`)),
  openalex: text => idsNamed("openalex", openalexOf(unpunctuated(text))),
};

function idsOfBare(text: string, digitsAre: "pmid" | undefined): WorkIds | string | undefined {
  // `doi.org/10.1234/abc` and the like, as people copy them from print.
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

export function pmidOf(text: string): string | undefined {
  return /^0*([1-9]\d{0,8})$/.exec(text)?.[1];
}

export function openalexOf(text: string): string | undefined {
  return /^W[1-9]\d{0,11}$/i.test(text) ? text.toUpperCase() : undefined;
}

function idsNamed(name: keyof WorkIds, id: string | undefined): WorkIds | undefined {
  return id === undefined ? undefined : { [name]: id };
}

/** Without the brackets or quotes around it: `<10.1234/abc>,`. */
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

function urlProblem(address: string): string {
  const url = URL.parse(address);
  if (url !== null && (url.username !== "" || url.password !== ""))
    return `the address at ${url.host} holds a user name or a password; put it without them`;
  return `${shown(address)} is no address we can ask; expected ${VALID}`;
}

function adviceFor(text: string): string {
  if (/^\d+$/.test(text)) return `should it be a PubMed id, write pmid:${text.slice(0, 12)}`;
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text) || /^(?:file|javascript|data|ftp):/i.test(text))
    return "of addresses, only http and https are asked";
  return `expected ${VALID}`;
}

/** What was read, without control characters and passwords, and not at any length. */
function shown(text: string): string {
  const safe = withoutUrlPassword(text);
  return JSON.stringify(safe.length > 80 ? `${safe.slice(0, 80)}…` : safe);
}
