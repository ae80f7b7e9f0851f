/** Extracts file links and metadata from the markup of a landing page. */
import { canonicalWebUrl } from "../identifiers/web-url.ts";
import type { RawCandidate } from "./finding.ts";
import { eachElement } from "./markup.ts";

export interface PageLinks {
  /** In the order of the page. */
  readonly rawCandidates: readonly RawCandidate[];
  readonly title?: string | undefined;
  readonly date?: string | undefined;
  readonly doi?: string | undefined;
  readonly licence?: string | undefined;
}

/** The metadata is in the head; the full text after it may be long. */
const PAGE_CHARS_MAX = 1024 * 1024;
const LINKS_MAX = 50;

const META_KINDS: ReadonlyMap<string, RawCandidate["kind"]> = new Map([
  ["citation_pdf_url", "pdf"],
  ["bepress_citation_pdf_url", "pdf"],
  ["eprints_document_url", "pdf"],
  ["citation_xml_url", "xml"],
  ["citation_fulltext_html_url", "html"],
]);
const META_FACTS: ReadonlyMap<string, "title" | "date" | "doi"> = new Map([
  ["citation_title", "title"],
  ["bepress_citation_title", "title"],
  ["citation_publication_date", "date"],
  ["citation_date", "date"],
  ["bepress_citation_date", "date"],
  ["citation_doi", "doi"],
  ["bepress_citation_doi", "doi"],
]);

export function linksOfPage(html: string, pageUrl: string): PageLinks {
  let base = pageUrl;
  const rawCandidates: RawCandidate[] = [];
  const facts: { title?: string; date?: string; doi?: string; licence?: string | undefined } = {};
  const add = (href: string | undefined, kind: RawCandidate["kind"]) => {
    const rawCandidate = { url: canonicalWebUrl(href ?? null, base), kind };
    if (href && rawCandidate.url !== undefined && rawCandidates.length < LINKS_MAX) rawCandidates.push(rawCandidate);
  };
  eachElement(html, "html", PAGE_CHARS_MAX, ({ name, attributes, text }) => {
    if (name === "base") base = canonicalWebUrl(attributes["href"], pageUrl) ?? base;
    if (name === "meta") {
      const meta = (attributes["name"] ?? attributes["property"] ?? "").toLowerCase();
      const content = attributes["content"]?.trim() ?? "";
      const fact = META_FACTS.get(meta);
      if (fact !== undefined && content !== "") facts[fact] ??= content;
      const kind = META_KINDS.get(meta);
      if (kind !== undefined && content !== "") add(content, kind);
    }
    if (name === "link") {
      const relations = (attributes["rel"] ?? "").toLowerCase().split(/\s+/);
      const kind = kindOfType(attributes["type"]);
      if (kind !== undefined && (relations.includes("alternate") || relations.includes("item")))
        add(attributes["href"], kind);
      if (relations.includes("license")) facts.licence ??= canonicalWebUrl(attributes["href"], base);
    }
    if (name === "script" && attributes["type"]?.toLowerCase() === "application/ld+json")
      for (const contentUrl of encodingsIn(text)) add(contentUrl, "pdf");
  });
  return { rawCandidates, ...facts };
}

export function kindOfType(type: string | undefined): "pdf" | "xml" | undefined {
  const essence = type?.split(";")[0]?.trim().toLowerCase();
  if (essence === "application/pdf" || essence === "application/x-pdf") return "pdf";
  return essence === "application/xml" || essence === "text/xml" || essence === "application/jats+xml"
    ? "xml"
    : undefined;
}

/** Whether the body of a page is a PDF. A page may show a PDF header in its text, so only white space may stand before it. */
export function beginsAsPdf(body: string): boolean {
  return /^\s{0,1000}%PDF-/.test(body);
}

/** `encoding[].contentUrl` of schema.org, if its format is PDF. */
function encodingsIn(jsonLd: string): readonly string[] {
  let value: unknown;
  try {
    value = JSON.parse(jsonLd);
  } catch {
    // Invalid JSON-LD is common.
    return [];
  }
  const graph = fieldOf(value, "@graph");
  const things = [value, ...listed(value), ...listed(graph)].slice(0, LINKS_MAX);
  return things
    .flatMap(thing => [fieldOf(thing, "encoding"), ...listed(fieldOf(thing, "encoding"))])
    .filter(each => /pdf/i.test(String(textOf(fieldOf(each, "encodingFormat")) ?? textOf(fieldOf(each, "fileFormat")))))
    .flatMap(each => textOf(fieldOf(each, "contentUrl")) ?? [])
    .slice(0, LINKS_MAX);
}

function listed(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
