import { DOI_PREFIX } from "../../core/text/doi-prefix.ts";

/** Invisible characters: zero-width characters, marks of direction, soft hyphens, byte order marks. */
const INVISIBLE = /\p{Cf}|[\u115f\u1160\u3164\uffa0]/gu;

/** The visible text. A copied identifier may contain invisible characters, which would make it another identifier. */
export function withoutInvisible(text: string): string {
  return text.replace(INVISIBLE, "").trim();
}

/**
 * The start of an identifier. A DOI may contain separators, so a text is divided only at separators before such a start.
 * After `PMID` and a space, only a word with a digit is an identifier.
 */
const STARTS = new RegExp(
  String.raw`https?:\/\/|(?:doi|arxiv|pmid|pmcid|openalex)(?::|\s(?=\S*\d))|${DOI_PREFIX}|PMC\d|W\d{4}|\d{4}\.\d{4}`,
  "gi",
);
const SEPARATORS = " \t\r\n;,|\"'\u201c\u201d";
/** `doi: 10.1/a` and `PMID 123` are one identifier. */
const PREFIX = /^(?:doi|arxiv|pmid|pmcid|openalex|url)\s?:?$/i;

/** A URL ends here at the latest. It may contain commas and semicolons: `https://x.example/?ids=5,10.1234/abc`. */
const URL_END = /[\s|"'\u201c\u201d]|$/g;

/** The identifiers of a text: `10.1/a; 10.1/b`, `"10.1/a","10.1/b"`, or the text itself if it names one work. */
export function splitIdentifiers(text: string): readonly string[] {
  const plain = withoutInvisible(text);
  const starts: number[] = [];
  const endOfUrl = urlEndsIn(plain);
  let urlEnd = endOfUrl(0);
  for (const { index, 0: start } of plain.matchAll(STARTS)) {
    const isUrl = /^http/i.test(start);
    if (!isSeparator(plain[index - 1]) || (index < urlEnd && !isUrl)) continue;
    starts.push(index);
    urlEnd = isUrl ? endOfUrl(index) : index;
  }
  if (starts.length === 0) return plain === "" ? [] : [plain];
  const parts = [0, ...starts].map((start, at) => trimmed(plain.slice(start, starts[at])));
  const tokens: string[] = [];
  for (const part of parts) {
    const last = tokens.at(-1);
    if (last !== undefined && PREFIX.test(last)) tokens[tokens.length - 1] = `${last.replace(/\s?:?$/, "")}:${part}`;
    else if (part !== "") tokens.push(part);
  }
  return tokens;
}

/** The hosts of URLs that are identifiers: these end before the next identifier. */
const IDENTIFIER_URL =
  /^https?:\/\/(?:(?:www\.|dx\.)?doi|(?:www\.|export\.)?arxiv|(?:www\.|api\.)?openalex|(?:www\.)?europepmc)\.org\/|^https?:\/\/(?:www\.|pmc\.|pubmed\.)?ncbi\.nlm\.nih\.gov\//i;

/**
 * Finds the end of the URL at `start`; `start` if there is none, or if it is an identifier. To be called with growing
 * values: of thousands of URLs without a space between them, the end is found once.
 */
function urlEndsIn(text: string): (start: number) => number {
  let end = -1;
  return start => {
    const beginning = text.slice(start, start + 40);
    if (!/^https?:\/\//i.test(beginning) || IDENTIFIER_URL.test(beginning)) return start;
    if (end < start) {
      URL_END.lastIndex = start;
      end = URL_END.exec(text)?.index ?? text.length;
    }
    return end;
  };
}

function isSeparator(character: string | undefined): boolean {
  return character !== undefined && SEPARATORS.includes(character);
}

/** Without separators around it. */
function trimmed(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isSeparator(text[start])) start += 1;
  while (end > start && isSeparator(text[end - 1])) end -= 1;
  return text.slice(start, end);
}
