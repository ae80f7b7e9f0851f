import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { workOf } from "../../src/harvest/identifiers/identifiers.ts";
import type { SimulatedWork } from "../../src/testing/internet/catalogue.ts";
import type { Internet } from "../../src/testing/internet/start-internet.ts";
import { collectOutput, type EndedProcess } from "../process-output.ts";

export interface DocstokgProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<EndedProcess>;
  /** Its stderr so far. */
  stderrSoFar(): string;
}

/** High limits and short circuit times, so that a test does not wait. */
const RATELIMITS = `
version: 1
extends: none
defaults:
  metadata: { rates: 90/SECOND, max_delay_ms: 5000 }
  landing: { rates: 90/SECOND, max_delay_ms: 5000 }
  artifact: { rates: 90/SECOND, max_delay_ms: 5000 }
`;
const BREAKERS = `
version: 1
extends: none
defaults: { fail_max: 3, reset_timeout_s: 1 }
advanced: { rolling_window: { enabled: false } }
`;

/**
 * Runs `docstokg` against the simulated internet.
 * @param policy `shipped` keeps the limits of services, which the simulated internet enforces
 */
export function startDocstokg(
  t: TestContext,
  internet: Internet,
  folder: string,
  args: readonly string[],
  input?: string,
  policy: "quick" | "shipped" = "quick",
): DocstokgProcess {
  const ca = join(folder, "ca.pem");
  writeFileSync(ca, internet.network.tls.ca);
  writeFileSync(join(folder, "ratelimits.yaml"), RATELIMITS);
  writeFileSync(join(folder, "breakers.yaml"), BREAKERS);
  const network = internet.network.connectTo.flatMap(entry => ["--connect-to", entry]);
  const out = ["--out", join(folder, "papers")];
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "run-process.ts"), ...args, ...out, ...network, "--ca", ca],
    {
      env: {
        PATH: process.env["PATH"],
        DOCSTOKG_MAILTO: "test@example.org",
        ...(policy === "quick" && {
          DOCSTOKG_RLIMITS_YAML: join(folder, "ratelimits.yaml"),
          DOCSTOKG_BREAKERS_YAML: join(folder, "breakers.yaml"),
        }),
      },
      stdio: ["pipe", "pipe", "pipe"],
    },
  );
  t.after(() => child.kill("SIGKILL"));
  child.stdin?.on("error", () => undefined);
  if (input !== undefined) child.stdin?.end(input);
  return { child, ...collectOutput(child) };
}

/** Names of the finished files. */
export function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(join(folder, "papers")).filter(name => name.endsWith(".pdf"));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

export function keyOf({ ids }: SimulatedWork): string {
  return workOf({ ...(ids.doi === undefined ? {} : { doi: ids.doi }) }).key;
}

/** A copy that OpenAlex returns, at a host without limits. */
export function isQuick({ copies }: SimulatedWork): boolean {
  const [first] = copies;
  return first?.isGood === true && first.via.includes("openalex") && new URL(first.url).host.endsWith(".example");
}
