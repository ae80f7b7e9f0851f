import type { InputLine } from "./text-lines.ts";

export interface TaggedRecord {
  /** The first line, from 1. */
  readonly line: number;
  /** By the names of columns that `workOfRecord` knows. */
  readonly fields: Readonly<Record<string, string>>;
}

/** Tags of RIS (`DO  - 10.1/a`) and of PubMed (`PMID- 123`, `LID - 10.1/a [doi]`), by the column that they fill. */
const COLUMNS: Readonly<Record<string, string>> = {
  DO: "doi",
  PMID: "pmid",
  PMC: "pmcid",
  C2: "pmcid",
  UR: "url",
  L1: "url",
  TI: "title",
  T1: "title",
  PY: "year",
  Y1: "year",
  DP: "year",
};

/** A longer value, such as an abstract, is not continued. */
const VALUE_CHARS_MAX = 8192;

/** The records of a RIS or PubMed file. RIS ends a record with `ER`, PubMed starts one with `PMID`. */
export async function* taggedRecords(lines: AsyncIterable<InputLine>): AsyncGenerator<TaggedRecord> {
  let fields: Record<string, string> = {};
  let firstLine = 0;
  let isOpen = false;
  /** The field whose further lines may follow: PubMed indents them. */
  let last: { readonly tag: string; value: string } | undefined;
  const endField = () => {
    if (last !== undefined) add(fields, last.tag, last.value.trim());
    last = undefined;
  };
  const finished = (): TaggedRecord => {
    endField();
    const record = { line: firstLine, fields };
    fields = {};
    isOpen = false;
    return record;
  };
  for await (const { number, text } of lines) {
    const [, tag, value = ""] = /^\ufeff?([A-Z][A-Z0-9]{1,3}) {0,2}-(?: (.*))?$/.exec(text) ?? [];
    if (tag === undefined) {
      const isContinued = last !== undefined && /^ {4,}\S/.test(text) && last.value.length < VALUE_CHARS_MAX;
      if (isContinued && last !== undefined) last.value += ` ${text.trim()}`;
      continue;
    }
    endField();
    if (isOpen && (tag === "TY" || tag === "PMID")) yield finished();
    if (!isOpen) {
      isOpen = true;
      firstLine = number;
    }
    if (tag === "ER") yield finished();
    else last = { tag, value };
  }
  if (isOpen) yield finished();
}

function add(fields: Record<string, string>, tag: string, value: string): void {
  // PubMed has several identifiers under one tag, with their kind in brackets.
  const [, doi] = /^(\S+) \[doi\]$/.exec(value) ?? [];
  const column = doi === undefined ? COLUMNS[tag] : "doi";
  if (column === undefined || value === "") return;
  if (column === "pmcid" && !/^PMC\d+$/i.test(value)) return;
  // Reference managers write the paths of their own files here: `internal-pdf://…`, `files/12/a.pdf`.
  if (tag === "L1" && !/^https?:/i.test(value)) return;
  fields[column] ??= doi ?? value;
}
