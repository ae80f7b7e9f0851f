/** Metadata in the formats of reference managers: CSL-JSON and BibTeX. */
import { sha256Of } from "../../files/file-hash.ts";
import type { WorkAuthor, WorkIds, WorkMetadata } from "../work.ts";

export interface CitedWork {
  readonly key: string;
  readonly ids: WorkIds;
  readonly metadata?: WorkMetadata | undefined;
}

/** An item of CSL-JSON (https://citationstyles.org). Unknown fields are left out. */
export function cslItem({ key, ids, metadata = {} }: CitedWork): Readonly<Record<string, unknown>> {
  const { title, authors, year, venue, publisher, volume, issue, pages, type, isRetracted } = metadata;
  const item = {
    id: key,
    type: type ?? "article",
    title,
    author: authors?.map(({ family, given, name }) => (family === undefined ? { literal: name } : { family, given })),
    issued: year === undefined ? undefined : { "date-parts": [[year]] },
    "container-title": venue,
    publisher,
    volume,
    issue,
    page: pages,
    DOI: ids.doi,
    PMID: ids.pmid,
    PMCID: ids.pmcid,
    URL: ids.arxiv === undefined ? (ids.url ?? openalexUrl(ids)) : `https://arxiv.org/abs/${ids.arxiv}`,
    status: isRetracted === true ? "retracted" : undefined,
  };
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== undefined));
}

/** For a work without any other identifier: the formats have no field for one of OpenAlex. */
function openalexUrl({ openalex, ...others }: WorkIds): string | undefined {
  return Object.values(others).some(Boolean) ? undefined : openalex && `https://openalex.org/${openalex}`;
}

const BIBTEX_TYPES: Readonly<Record<string, string>> = {
  "article-journal": "article",
  "paper-conference": "inproceedings",
  chapter: "incollection",
  book: "book",
  thesis: "phdthesis",
  report: "techreport",
};

/** An entry of BibTeX. Its key comes from the key of the work alone, so that it is the same in every export. */
export function bibtexEntry({ key, ids, metadata = {} }: CitedWork): string {
  const { title, authors, year, venue, publisher, volume, issue, pages, type } = metadata;
  const kind = BIBTEX_TYPES[type ?? ""] ?? "misc";
  const container = kind === "article" ? "journal" : kind === "misc" ? "howpublished" : "booktitle";
  const fields: Readonly<Record<string, string | number | undefined>> = {
    author: authors?.map(bibtexName).join(" and "),
    title,
    year,
    [container]: venue,
    publisher,
    volume,
    number: issue,
    pages: pages?.replace(/(\d)[-–](\d)/g, "$1--$2"),
    doi: ids.doi,
    eprint: ids.arxiv,
    ...(ids.arxiv === undefined ? {} : { archiveprefix: "arXiv" }),
    pmid: ids.pmid,
    pmcid: ids.pmcid,
    url: ids.url ?? openalexUrl(ids),
  };
  const lines = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [`  ${name} = {${bibtexText(String(value), name)}},\n`],
  );
  return `@${kind}{${bibtexKey(key)},\n${lines.join("")}}\n`;
}

/**
 * A key that has to change gets a part of its hash, because another key could become the same one. BibTeX ignores case,
 * and only the ids of PMC and OpenAlex always have capitals.
 */
function bibtexKey(key: string): string {
  if (/^(?:[a-z0-9.:/_-]+|pmcid:PMC\d+|openalex:W\d+)$/.test(key)) return key;
  return `${key.replace(/[^A-Za-z0-9.:/_-]+/g, "-")}-${sha256Of(key).slice(0, 16)}`;
}

function bibtexName({ family, given, name }: WorkAuthor): string {
  // BibTeX does not divide a name in braces into family name and given names.
  if (family === undefined) return `{${withoutBraces(name ?? "")}}`;
  return withoutBraces(given === undefined ? family : `${family}, ${given}`);
}

/** BibTeX reads UTF-8: only its own special characters are escaped. `bibtexName` has removed the braces of authors. */
function bibtexText(text: string, field: string): string {
  // An identifier must stay the same. Braces and backslashes are percent-encoded, because they could hide the end of the field.
  if (field === "doi" || field === "url" || field === "eprint")
    return text.replace(/[{}\\]/g, encodeURIComponent).replace(/[%#]/g, "\\$&");
  const plain = field === "author" ? text : withoutBraces(text);
  return plain.replace(/[\\%#&$_^~]/g, escaped);
}

/** A brace without its counterpart would make the rest of the file unreadable. */
function withoutBraces(text: string): string {
  return text.replace(/[{}]/g, "");
}

function escaped(character: string): string {
  if (character === "\\") return "\\textbackslash{}";
  if (character === "^") return "\\textasciicircum{}";
  return character === "~" ? "\\textasciitilde{}" : `\\${character}`;
}
