import { ExitCode } from "../exit-code.ts";
import type { Io } from "../program.ts";
import { printJson } from "./json.ts";
import { formatTable, terminalWidth } from "./table.ts";

/** One line of a doctor command. */
export interface DoctorFinding {
  readonly what: string;
  readonly verdict: "ok" | "warning" | "problem";
  readonly detail: string;
  /** What to do about a warning or a problem. */
  readonly advice?: string;
}

/** Prints the results, as a table with the advice below it or as JSON. The exit code is 1 if there is a problem. */
export function printFindings(io: Io, findings: readonly DoctorFinding[], isJson: boolean): ExitCode {
  if (isJson) printJson(io, { findings });
  else {
    const rows = findings.map(({ what, verdict, detail }) => [what, verdict, detail]);
    io.stdout.write(formatTable(["check", "result", "details"], rows, { columns: terminalWidth(io.stdout) }));
    const advice = findings.flatMap(({ what, advice: text }) => (text === undefined ? [] : [`${what}: ${text}`]));
    if (advice.length > 0) io.stdout.write(`\n${advice.map(line => `${line}\n`).join("")}`);
  }
  return findings.some(({ verdict }) => verdict === "problem") ? ExitCode.partial : ExitCode.ok;
}
