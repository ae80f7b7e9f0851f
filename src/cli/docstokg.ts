import { breaker } from "./breaker.ts";
import { demo } from "./demo.ts";
import { limits } from "./limits.ts";
import { policy } from "./policy.ts";
import { type Program, runAsProcess } from "./program.ts";
import { report } from "./report.ts";
import { retry } from "./retry.ts";
import { run } from "./run.ts";
import { status } from "./status.ts";
import { why } from "./why.ts";

export const docstokg: Program = {
  name: "docstokg",
  summary: "A polite, resilient way out to the network.",
  commands: [run, status, retry, demo, report, policy, breaker, limits, why],
};

export const main = (process: NodeJS.Process): Promise<void> => runAsProcess(docstokg, process);
