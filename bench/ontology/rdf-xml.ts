/** How long the check of a large RDF/XML file takes, and how much memory it needs. */
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atLeast, atMost } from "../kit/report.ts";

const FILE_BYTES = 500_000_000;
const QUICK_FILE_BYTES = 20_000_000;
const ROUNDS = 3;
const MEMORY_BYTES_MAX = 200_000_000;
const MEGABYTE = 1_000_000;

interface Run {
  readonly cpuS: number;
  readonly stdout: string;
}

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const folder = mkdtempSync(join(tmpdir(), "docstokg-bench-"));
  try {
    const path = join(folder, "large.owl");
    const bytes = writeOntology(path, isQuick ? QUICK_FILE_BYTES : FILE_BYTES);
    const hasRapper = spawnSync("rapper", ["--version"]).status === 0;
    const ours: Run[] = [];
    const theirs: Run[] = [];
    for (let round = 0; round < (isQuick ? 1 : ROUNDS); round += 1) {
      ours.push(timed(process.execPath, [join(import.meta.dirname, "inspect.ts"), path]));
      if (hasRapper) theirs.push(timed("rapper", ["-q", "-c", "-i", "rdfxml", path]));
    }
    const results = ours.map(({ stdout }) => JSON.parse(stdout));
    const maxBytes = Math.max(...results.map(result => result.maxBytes));
    const rows = [
      ["ontofetch", fastest(ours), bytes / MEGABYTE / fastest(ours), maxBytes / MEGABYTE],
      ...(hasRapper ? [["rapper -c", fastest(theirs), bytes / MEGABYTE / fastest(theirs), undefined]] : []),
    ] as const;
    return {
      tables: [
        {
          title: `CPU time for a check of ${Math.round(bytes / MEGABYTE)} MB of RDF/XML`,
          notes: [
            `${results[0].statements} statements; the fastest of ${ours.length}`,
            ...(hasRapper ? [] : ["rapper is not installed (Debian: raptor2-utils): no comparison"]),
          ],
          columns: ["case", "CPU s", "MB/s", "most memory MB"],
          rows,
        },
      ],
      figures: [
        ...(hasRapper ? [atLeast("RDF/XML: speed / rapper -c", fastest(theirs) / fastest(ours), 1)] : []),
        atMost("RDF/XML: most memory in MB", maxBytes / MEGABYTE, MEMORY_BYTES_MAX / MEGABYTE),
      ],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function fastest(runs: readonly Run[]): number {
  return Math.min(...runs.map(({ cpuS }) => cpuS));
}

/** The shell measures the CPU time of a child, which Node does not know. */
function timed(command: string, args: readonly string[]): Run {
  const script = 'TIMEFORMAT="cpu %U %S"; time "$0" "$@"';
  const { status, stdout, stderr } = spawnSync("bash", ["-c", script, command, ...args], {
    encoding: "utf8",
    maxBuffer: 10_000_000,
  });
  const [, user, system] = /cpu (\d+\.\d+) (\d+\.\d+)\s*$/.exec(stderr) ?? [];
  if (status !== 0 || user === undefined || system === undefined) throw new Error(`${command} failed: ${stderr}`);
  return { cpuS: Number(user) + Number(system), stdout };
}

/** Classes with labels, definitions, synonyms and restrictions, as in the files of the OBO Foundry. */
function writeOntology(path: string, bytes: number): number {
  const file = openSync(path, "w");
  let written = 0;
  const write = (text: string) => {
    written += writeSync(file, text);
  };
  write(`<?xml version="1.0"?>
<rdf:RDF xmlns="http://purl.example.org/large.owl#" xml:base="http://purl.example.org/large.owl"
  xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
  xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xmlns:obo="http://purl.example.org/obo/"
  xmlns:oboInOwl="http://www.geneontology.org/formats/oboInOwl#" xmlns:xsd="http://www.w3.org/2001/XMLSchema#">
  <owl:Ontology rdf:about="http://purl.example.org/large.owl"/>
`);
  for (let batch = 0; written < bytes; batch += 1) {
    write(Array.from({ length: 1000 }, (_, index) => classOf(batch * 1000 + index)).join(""));
  }
  write("</rdf:RDF>\n");
  closeSync(file);
  return written;
}

function classOf(number: number): string {
  const id = (of: number) => `http://purl.example.org/obo/EX_${String(of).padStart(7, "0")}`;
  return `  <owl:Class rdf:about="${id(number)}">
    <rdfs:subClassOf rdf:resource="${id(Math.floor(number / 3))}"/>
    <rdfs:subClassOf>
      <owl:Restriction>
        <owl:onProperty rdf:resource="http://purl.example.org/obo/BFO_0000050"/>
        <owl:someValuesFrom rdf:resource="${id(Math.floor(number / 7))}"/>
      </owl:Restriction>
    </rdfs:subClassOf>
    <obo:IAO_0000115 rdf:datatype="http://www.w3.org/2001/XMLSchema#string">A structure with the number ${number}, which is part of another structure &amp; has a definition of ordinary length.</obo:IAO_0000115>
    <oboInOwl:hasExactSynonym rdf:datatype="http://www.w3.org/2001/XMLSchema#string">synonym of ${number}</oboInOwl:hasExactSynonym>
    <oboInOwl:id>EX:${number}</oboInOwl:id>
    <rdfs:label xml:lang="en">structure ${number}</rdfs:label>
  </owl:Class>
`;
}
