import type { Program } from "./program.ts";
import { runAsProcess } from "./run-as-process.ts";
import { limitYoungHeap } from "./young-heap.ts";

export const ontofetch: Program = {
  name: "ontofetch",
  summary: "Plans, fetches, validates and locks ontologies within the rate limits of their services.",
  commands: [
    {
      name: "init",
      summary: "write an example sources.yaml",
      load: async () => (await import("./ontofetch/init.ts")).init,
    },
    {
      name: "plan",
      summary: "print what would be fetched: versions, sizes, licences",
      load: async () => (await import("./ontofetch/plan.ts")).plan,
    },
    {
      name: "pull",
      summary: "fetch new versions, validate, store and lock them",
      load: async () => (await import("./ontofetch/pull.ts")).pull,
    },
    {
      name: "show",
      summary: "list stored versions, and which of them are locked",
      load: async () => (await import("./ontofetch/show.ts")).show,
    },
    {
      name: "versions",
      summary: "list the versions of an ontology: stored, locked and listed by its service",
      load: async () => (await import("./ontofetch/versions.ts")).versions,
    },
    {
      name: "path",
      summary: "print the path of a stored file",
      load: async () => (await import("./ontofetch/path.ts")).path,
    },
    {
      name: "diff",
      summary: "compare the terms of two stored versions",
      load: async () => (await import("./ontofetch/diff.ts")).diff,
    },
    {
      name: "export",
      summary: "write a stored version as N-Triples, nodes and edges, obographs or RO-Crate",
      load: async () => (await import("./ontofetch/export.ts")).exportVersion,
    },
    {
      name: "validate",
      summary: "validate stored files: hash, completeness, syntax",
      load: async () => (await import("./ontofetch/validate.ts")).validate,
    },
    {
      name: "prune",
      summary: "remove old versions; locked versions are kept",
      load: async () => (await import("./ontofetch/prune.ts")).prune,
    },
    {
      name: "doctor",
      summary: "check environment, API keys, disk space and store",
      load: async () => (await import("./ontofetch/doctor.ts")).doctor,
    },
    {
      name: "rl",
      summary: "print the rate limits of services and recent waits (rl doctor)",
      load: async () => (await import("./ontofetch/rl.ts")).rl,
    },
    {
      name: "demo",
      summary: "plan and pull against a simulated internet, without network access",
      load: async () => (await import("./ontofetch/demo.ts")).demo,
    },
    {
      name: "completion",
      summary: "print a completion script for bash, zsh or fish",
      load: async () => (await import("./completion.ts")).completion(ontofetch),
    },
  ],
};

export function main(process: NodeJS.Process): Promise<void> {
  limitYoungHeap();
  return runAsProcess(ontofetch, process);
}
