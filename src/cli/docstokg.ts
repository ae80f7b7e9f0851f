import { policy } from "./policy.ts";
import { type Program, runAsProcess } from "./program.ts";
import { report } from "./report.ts";

export const docstokg: Program = {
  name: "docstokg",
  summary: "A polite, resilient way out to the network.",
  commands: [policy, report],
};

export const main = (process: NodeJS.Process): Promise<void> => runAsProcess(docstokg, process);
