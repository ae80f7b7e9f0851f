/** Processes of `docstokg` for the figures of workers. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { loadavg } from "node:os";
import { join } from "node:path";

const PROGRAM = join(import.meta.dirname, "..", "bin", "docstokg.cjs");

export interface StartedProcess {
  readonly child: ChildProcess;
  /** Its stdout, when it has ended. */
  readonly ended: Promise<string>;
}

/** Starts the built program, as a user would. */
export function startDocstokg(
  args: readonly string[],
  { env = {}, input }: { readonly env?: Readonly<Record<string, string>>; readonly input?: string } = {},
): StartedProcess {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    // Without a key the simulated OpenAlex answers 1,000 queries a day, which 2,000 works exceed.
    env: {
      PATH: process.env["PATH"],
      DOCSTOKG_MAILTO: "test@example.org",
      OPENALEX_API_KEY: "simulated-key",
      ...env,
    },
    stdio: ["pipe", "pipe", process.env["VERBOSE"] === undefined ? "ignore" : "inherit"],
  });
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(input);
  let text = "";
  child.stdout?.on("data", chunk => {
    text += String(chunk);
  });
  return { child, ended: once(child, "close").then(() => text) };
}

export function printFigures(figures: Readonly<Record<string, unknown>>): void {
  const load = loadavg().map(each => each.toFixed(1));
  process.stdout.write(`${JSON.stringify({ ...figures, load }, undefined, 2)}\n`);
}
