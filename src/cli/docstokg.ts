import { breaker } from "./docstokg/breaker.ts";
import { demo } from "./docstokg/demo.ts";
import { limits } from "./docstokg/limits.ts";
import { policy } from "./docstokg/policy.ts";
import { report } from "./docstokg/report.ts";
import { retry } from "./docstokg/retry.ts";
import { run } from "./docstokg/run.ts";
import { status } from "./docstokg/status.ts";
import { why } from "./docstokg/why.ts";
import { type Program, runAsProcess } from "./program.ts";

export const docstokg: Program = {
  name: "docstokg",
  summary: "A polite, resilient way out to the network.",
  commands: [run, status, retry, demo, report, policy, breaker, limits, why],
};

export const main = (process: NodeJS.Process): Promise<void> => runAsProcess(docstokg, process);
