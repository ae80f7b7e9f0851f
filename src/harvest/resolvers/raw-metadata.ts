/** Metadata as services send it, turned into `WorkMetadata`: cleaned, limited, and with one vocabulary of types. */
import type { WorkAuthor, WorkMetadata } from "../work.ts";

type RawText = string | null | undefined;

export interface RawMetadata extends Omit<Partial<Record<keyof WorkMetadata, RawText>>, RawKeys> {
  readonly authors?: readonly RawAuthor[] | undefined;
  /** A year, or a date that starts with one. */
  readonly year?: number | string | null | undefined;
  readonly isRetracted?: boolean | null | undefined;
  readonly registrar?: WorkMetadata["registrar"];
}

type RawKeys = "authors" | "year" | "isRetracted" | "registrar";

export interface RawAuthor {
  readonly name?: RawText;
  readonly family?: RawText;
  readonly given?: RawText;
}

const TEXT_CHARS_MAX = 500;
/** Tags that Crossref and Europe PMC keep in titles. Other text in angle brackets may belong to the title. */
const MARKUP =
  /<\/?(?:[biu]|em|su[bp]|strong|italic|bold|scp|tt|span|p|br|jats:[a-z-]{1,20}|mml:[a-z]{1,20})(?:\s[^<>]{0,200})?\/?>/gi;
const AUTHORS_MAX = 100;
const TEXT_FIELDS = ["title", "venue", "publisher", "volume", "issue", "pages", "licence", "openAccess"] as const;

/** Undefined if nothing is known. */
export function metadataOf(raw: RawMetadata): WorkMetadata | undefined {
  const texts = TEXT_FIELDS.flatMap(field => {
    const text = cleanText(raw[field]);
    return text === undefined ? [] : [[field, text] as const];
  });
  const authors = (raw.authors ?? []).slice(0, AUTHORS_MAX).flatMap(author => authorOf(author) ?? []);
  const year = yearOf(raw.year);
  const type = typeOf(raw.type);
  const metadata: WorkMetadata = {
    ...Object.fromEntries(texts),
    ...(authors.length === 0 ? {} : { authors }),
    ...(year === undefined ? {} : { year }),
    ...(type === undefined ? {} : { type }),
    ...(typeof raw.isRetracted === "boolean" ? { isRetracted: raw.isRetracted } : {}),
    ...(raw.registrar === undefined ? {} : { registrar: raw.registrar }),
  };
  return Object.keys(metadata).length === 0 ? undefined : metadata;
}

function authorOf({ name, family, given }: RawAuthor): WorkAuthor | undefined {
  const names = { name: cleanText(name), family: cleanText(family), given: cleanText(given) };
  if (names.family !== undefined)
    return { family: names.family, ...(names.given === undefined ? {} : { given: names.given }) };
  return names.name === undefined ? undefined : { name: names.name };
}

/** One line without markup, control and invisible characters. */
function cleanText(text: RawText): string | undefined {
  if (typeof text !== "string") return undefined;
  const words = text
    .slice(0, 4 * TEXT_CHARS_MAX)
    .replace(MARKUP, "")
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\s]+/gu, " ")
    .trim()
    .slice(0, TEXT_CHARS_MAX)
    // The cut may have left the first half of a character.
    .replace(/\p{Cs}$/u, "");
  return words === "" ? undefined : words;
}

function yearOf(year: RawMetadata["year"]): number | undefined {
  const number = typeof year === "string" ? Number(/^\d{4}/.exec(year)?.[0]) : year;
  return Number.isInteger(number) && Number(number) >= 1000 && Number(number) < 2200 ? Number(number) : undefined;
}

/** Types of CSL by the type names of Crossref, OpenAlex, DataCite, Unpaywall and Europe PMC. */
const TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    article: "article-journal",
    journalarticle: "article-journal",
    researcharticle: "article-journal",
    review: "article-journal",
    reviewarticle: "article-journal",
    letter: "article-journal",
    editorial: "article-journal",
    proceedingsarticle: "paper-conference",
    conferencepaper: "paper-conference",
    conferenceproceeding: "paper-conference",
    bookchapter: "chapter",
    booksection: "chapter",
    bookpart: "chapter",
    chapter: "chapter",
    book: "book",
    monograph: "book",
    editedbook: "book",
    referencebook: "book",
    dissertation: "thesis",
    thesis: "thesis",
    report: "report",
    dataset: "dataset",
    software: "software",
    preprint: "article",
    postedcontent: "article",
  }),
);

function typeOf(type: RawText): string | undefined {
  return TYPES.get((type ?? "").toLowerCase().replace(/[^a-z]/g, ""));
}
