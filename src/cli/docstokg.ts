import { breaker } from "./breaker.ts";
import { limits } from "./limits.ts";
import { policy } from "./policy.ts";
import { type Program, runAsProcess } from "./program.ts";
import { why } from "./why.ts";

export const docstokg: Program = {
  name: "docstokg",
  summary: "A polite, resilient way out to the network.",
  commands: [policy, breaker, limits, why],
};

export const main = (process: NodeJS.Process): Promise<void> => runAsProcess(docstokg, process);
