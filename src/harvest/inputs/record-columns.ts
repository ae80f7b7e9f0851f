/** The columns of tables and the fields of records that identify works. */
import { nearest } from "../../core/text/nearest.ts";
import { identify, workOf } from "../identifiers/identifiers.ts";
import { quotedInput, shortened } from "../identifiers/quoted-input.ts";
import { splitIdentifiers, withoutInvisible } from "../identifiers/split-identifiers.ts";
import { metadataOf } from "../resolvers/raw-metadata.ts";
import type { Work, WorkIds } from "../work.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Names of columns by what they contain, in lower case and without spaces and underscores: those of spreadsheets, of
 * PubMed, Scopus, Zotero and Web of Science (DI, PM, TI, PY).
 */
const ID_COLUMNS = {
  doi: ["doi", "di", "articledoi", "doilink"],
  arxiv: ["arxiv", "arxivid", "eprint"],
  pmcid: ["pmcid", "pmc"],
  pmid: ["pmid", "pubmedid", "pubmed", "pm"],
  openalex: ["openalex", "openalexid"],
  any: ["id", "identifier", "ids"],
  url: ["url", "link", "href"],
} as const;
const TITLE_COLUMNS = ["title", "articletitle", "ti"];
const YEAR_COLUMNS = ["year", "publicationyear", "py", "pubyear", "publicationdate"];

type IdColumn = keyof typeof ID_COLUMNS;
const ID_KINDS = Object.keys(ID_COLUMNS) as readonly IdColumn[];
/** For messages: one name of each kind. */
const KNOWN = ID_KINDS.map(kind => ID_COLUMNS[kind][0]).join(", ");

/** Whether a column of this name has identifiers or URLs. */
export function isIdColumn(name: string): boolean {
  return ID_KINDS.some(kind => namesOf([name], ID_COLUMNS[kind]).length > 0);
}

export interface RecordProblem {
  readonly text: string;
  readonly message: string;
}

/** Why no column has the identifiers of works; undefined if a column has them. */
export function columnProblem(names: readonly string[], wanted: string | undefined): string | undefined {
  const found = `columns found: ${shortened(names.slice(0, 20).join(", "))}`;
  if (wanted === undefined)
    return ID_KINDS.some(kind => namesOf(names, ID_COLUMNS[kind]).length > 0)
      ? undefined
      : `none of the columns ${KNOWN} was found; name the column with --column; ${found}`;
  if (names.some(name => isSameName(name, wanted))) return undefined;
  const near = nearest(wanted, names.slice(0, 1000));
  return `column ${shortened(wanted)} not found${near === undefined ? "" : `; did you mean ${shortened(near)}?`}; ${found}`;
}

/** The identifiers in the wanted column. `digitsAre` is the kind of identifier that digits alone are in this column. */
export function identifiersInColumn(
  record: Fields,
  wanted: string,
): { readonly tokens: readonly string[]; readonly digitsAre: "pmid" | undefined } | RecordProblem {
  const name = Object.keys(record).find(each => isSameName(each, wanted)) ?? wanted;
  const text = textOf(record[name]);
  if (text === undefined) return notText(record, name);
  if (text === "") return { text: "", message: `${shortened(name)} is empty` };
  return { tokens: splitIdentifiers(text), digitsAre: kindOfDigitsIn(name) };
}

/** One work with all identifiers of the record, with its title and year. An empty column counts as missing. */
export function workOfRecord(record: Fields): { readonly work: Work } | RecordProblem {
  const names = Object.keys(record);
  const ids: Record<string, string> = {};
  let problem: RecordProblem | undefined;
  for (const kind of ID_KINDS) {
    const name = namesOf(names, ID_COLUMNS[kind]).find(each => textOf(record[each]) !== "");
    if (name === undefined) continue;
    const text = textOf(record[name]);
    // A general column is only read if no other one has an identifier of the work.
    if (Object.keys(ids).length > 0 && (kind === "any" || kind === "url")) continue;
    if (text === undefined) {
      problem ??= notText(record, name);
      continue;
    }
    const read = idsOf(text, kind);
    if (typeof read === "string") problem ??= { text, message: read };
    else Object.assign(ids, { ...read, ...ids });
  }
  if (Object.keys(ids).length > 0) return { work: workOf(ids, metadataIn(record, names)) };
  if (problem !== undefined) return problem;
  const empty = ID_KINDS.flatMap(kind => namesOf(names, ID_COLUMNS[kind]));
  if (empty.length === 0) return { text: "", message: `the record has none of ${KNOWN}` };
  return { text: "", message: `${shortened(empty.join(", "))} ${empty.length === 1 ? "is" : "are"} empty` };
}

function notText(record: Fields, name: string): RecordProblem {
  const value = record[name];
  // Not JSON.stringify, which fails if a value is nested very deeply.
  const text = Array.isArray(value) ? "[…]" : typeof value === "object" ? "{…}" : String(value);
  return { text, message: `${shortened(name)} is not a string` };
}

/** The identifiers of the text; a message if the text is not one identifier. */
function idsOf(text: string, kind: IdColumn): WorkIds | string {
  const tokens = splitIdentifiers(text);
  if (tokens.length > 1) return `${quotedInput(text)} has ${tokens.length} identifiers; write one work per record`;
  const read = identify(withPrefix(text, kind), kind === "pmid" ? "pmid" : undefined);
  return "work" in read ? read.work.ids : read.message;
}

/** In a column of PMC or arXiv ids, an id may lack its prefix. */
function withPrefix(text: string, kind: IdColumn): string {
  if (kind === "pmcid" && /^\d+$/.test(text)) return `PMC${text}`;
  return kind === "arxiv" && !text.includes(":") ? `arxiv:${text}` : text;
}

function metadataIn(record: Fields, names: readonly string[]): Work["metadata"] {
  const textIn = (columns: readonly string[]) =>
    namesOf(names, columns)
      .map(name => textOf(record[name]))
      .find(text => text);
  return metadataOf({ title: textIn(TITLE_COLUMNS), year: textIn(YEAR_COLUMNS) });
}

/** The names of columns that have one of the wanted names, in the order of the wanted ones. */
function namesOf(names: readonly string[], wanted: readonly string[]): readonly string[] {
  const plain = names.map(plainName);
  return wanted.flatMap(each => names.filter((_, index) => plain[index] === each));
}

function plainName(name: string): string {
  return withoutInvisible(name)
    .toLowerCase()
    .replace(/[\s_-]+/g, "");
}

function isSameName(one: string, other: string): boolean {
  return withoutInvisible(one).toLowerCase() === withoutInvisible(other).toLowerCase();
}

function kindOfDigitsIn(columnName: string): "pmid" | undefined {
  return (ID_COLUMNS.pmid as readonly string[]).includes(plainName(columnName)) ? "pmid" : undefined;
}

/** Undefined if the value is neither text nor a number nor missing. */
function textOf(value: unknown): string | undefined {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? withoutInvisible(value) : undefined;
}
