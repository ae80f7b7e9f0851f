import { type Program, runAsProcess } from "./program.ts";

export const ontofetch: Program = {
  name: "ontofetch",
  summary: "Ontologies, fetched politely.",
  commands: [],
};

export const main = (process: NodeJS.Process): Promise<void> => runAsProcess(ontofetch, process);
