/** Files of a work beside its article: the source of a preprint, and supplements. Their bytes depend only on the work. */
import { gzipSync } from "node:zlib";
import type { SimulatedWork } from "./catalogue.ts";
import { makeZip } from "./zip.ts";

/** The LaTeX source, as arXiv sends it for a work with a single file. */
export function latexSource({ title, authors }: SimulatedWork): Buffer {
  const head = `\\documentclass{article}\n\\title{${title}}\n\\author{${authors.join(" \\and ")}}\n`;
  return gzipSync(`${head}\\begin{document}\n\\maketitle\nA work of the simulated internet.\n\\end{document}\n`);
}

export function supplementTable({ record, year }: SimulatedWork): Buffer {
  return Buffer.from(`record,year\n${record},${year}\n`);
}

export function supplementArchive(work: SimulatedWork): Buffer {
  return makeZip({ "table-s1.csv": supplementTable(work), "notes.txt": `Supplement of ${work.title}\n` });
}
