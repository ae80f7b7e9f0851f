/**
 * Runs the parsers of `ontofetch` on the test suites of the W3C: `RDF_TESTS=<checkout of w3c/rdf-tests> npm run
 * rdf-tests`. Prints, for each format, how many valid files are accepted, how many invalid ones are refused, and for
 * how many the statements are those of the suite. Exits with 1 if a suite has no valid files, or if less than 98 % of
 * its valid files are accepted or of its invalid files are refused. Statements that differ are printed only.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Parser } from "n3";
import { inspectFile } from "../src/ontology/file-inspection.ts";
import type { OntologyFileFormat } from "../src/ontology/format.ts";
import { formatTerm } from "../src/ontology/parsing/n-triples-text.ts";
import type { OnStatement } from "../src/ontology/parsing/statement.ts";

interface W3cTest {
  readonly type: string;
  readonly file: string;
  readonly result: string | undefined;
}

const SUITES: readonly (readonly [folder: string, format: OntologyFileFormat])[] = [
  ["rdf-xml", "rdf-xml"],
  ["rdf-turtle", "turtle"],
  ["rdf-trig", "trig"],
  ["rdf-n-triples", "n-triples"],
  ["rdf-n-quads", "n-quads"],
];
const BASE = "https://w3c.github.io/rdf-tests/rdf/";
const LEAST = 0.98;
/** A valid file without statements is no ontology, so a pull refuses it. For the suites its syntax is valid. */
const NO_STATEMENTS = /^(?:file contains no triples|file is empty)$/;

const root = process.env["RDF_TESTS"];
if (root === undefined) {
  console.error("set RDF_TESTS to a checkout of https://github.com/w3c/rdf-tests");
  process.exit(2);
}
let isGood = true;
for (const version of ["rdf11", "rdf12"]) {
  for (const [folder, format] of SUITES) {
    await runSuite(join(root, "rdf", version, folder, "manifest.ttl"), `${version} ${folder}`, format);
  }
}
process.exitCode = isGood ? 0 : 1;

async function runSuite(manifest: string, name: string, format: OntologyFileFormat): Promise<void> {
  const counts = { positives: 0, accepted: 0, negatives: 0, refused: 0, compared: 0, equal: 0 };
  const failures: string[] = [];
  for (const { type, file, result } of testsOf(manifest)) {
    if (type.includes("C14N")) continue;
    const lines: string[] = [];
    const claim = format === "rdf-xml" ? undefined : format;
    const options = { claim, base: addressOf(file), onStatement: lineOf(lines) };
    const found = await inspectFile(file, "full", options);
    const isAccepted = found.kind === "valid" || NO_STATEMENTS.test(found.problem);
    if (type.includes("Negative")) {
      counts.negatives += 1;
      if (isAccepted) failures.push(`accepted: ${file}`);
      else counts.refused += 1;
      continue;
    }
    counts.positives += 1;
    if (isAccepted) counts.accepted += 1;
    else failures.push(`refused: ${file}: ${found.problem}`);
    if (result === undefined || format === "trig" || format === "n-quads" || !existsSync(result)) continue;
    counts.compared += 1;
    if (isEqual(lines, await expectedLines(result))) counts.equal += 1;
    else failures.push(`statements differ: ${file}`);
  }
  const { positives, accepted, negatives, refused, compared, equal } = counts;
  console.log(
    `${name.padEnd(20)} accepted ${accepted} of ${positives}, refused ${refused} of ${negatives}` +
      (compared > 0 ? `, equal statements ${equal} of ${compared}` : ""),
  );
  for (const failure of failures) console.log(`  ${failure}`);
  if (accepted < LEAST * positives || refused < LEAST * negatives || positives === 0) isGood = false;
}

async function expectedLines(file: string): Promise<readonly string[]> {
  const lines: string[] = [];
  await inspectFile(file, "full", { claim: "n-triples", onStatement: lineOf(lines) });
  return lines;
}

/** Blank nodes have no names of their own, so all are written alike. */
function lineOf(lines: string[]): OnStatement {
  return (subject, predicate, object, kind, language, datatype) => {
    const from = subject.startsWith("_:") ? "_:" : `<${subject}>`;
    const to = formatTerm(object, kind, language.toLowerCase(), datatype).replaceAll(/_:[^\s)]+/g, "_:");
    lines.push(`${from} <${predicate}> ${to}`);
  };
}

/** The suites write XML literals in canonical form, which the parser does not produce. */
function isEqual(found: readonly string[], expected: readonly string[]): boolean {
  const plain = (lines: readonly string[]) =>
    JSON.stringify(
      [...new Set(lines.map(line => (line.includes("XMLLiteral") ? line.slice(0, line.indexOf('"')) : line)))].sort(),
    );
  return plain(found) === plain(expected);
}

function addressOf(file: string): string {
  return BASE + file.slice(join(root ?? "", "rdf").length + 1);
}

function testsOf(manifest: string): readonly W3cTest[] {
  if (!existsSync(manifest)) return [];
  const parser = new Parser({ baseIRI: pathToFileURL(manifest).href });
  const quads = parser.parse(readFileSync(manifest, "utf8"));
  const entries = new Map<string, Map<string, string>>();
  const included: string[] = [];
  for (const { subject, predicate, object } of quads) {
    const name = predicate.value.slice(
      Math.max(predicate.value.lastIndexOf("#"), predicate.value.lastIndexOf("/")) + 1,
    );
    const entry = entries.get(subject.value) ?? new Map<string, string>();
    entries.set(subject.value, entry.set(name, object.value));
    if (name === "first" && /manifest[^/]*\.ttl$/.test(object.value)) included.push(fileURLToPath(object.value));
  }
  const own = [...entries.values()].flatMap((entry): readonly W3cTest[] => {
    const type = entry.get("type");
    const action = entry.get("action");
    const result = entry.get("result");
    if (type === undefined || action === undefined || !action.startsWith("file:")) return [];
    const expected = result?.startsWith("file:") ? fileURLToPath(result) : undefined;
    return [{ type, file: fileURLToPath(action), result: expected }];
  });
  return [...own, ...included.flatMap(testsOf)];
}
