import { type Program, runAsProcess } from "./program.ts";

export const ontofetch: Program = {
  name: "ontofetch",
  summary: "Ontologies, fetched politely. This version has no commands of its own yet.",
  commands: [],
};

export const main = (process: NodeJS.Process): Promise<void> => runAsProcess(ontofetch, process);
