import type { Program } from "./program.ts";
import { runAsProcess } from "./run-as-process.ts";

export const docstokg: Program = {
  name: "docstokg",
  summary:
    "Outbound HTTP with per-host rate limits, circuit breakers and a cache; downloads works by DOI, arXiv id or URL.",
  commands: [
    {
      name: "run",
      summary: "download the files of works (DOIs, arXiv ids, PMCIDs, URLs or a search) into a folder with a manifest",
      load: async () => (await import("./docstokg/run.ts")).run,
    },
    {
      name: "worker",
      summary: "work on the runs of a PostgreSQL manifest, together with workers on other machines",
      load: async () => (await import("./docstokg/worker.ts")).worker,
    },
    {
      name: "status",
      summary: "print the works, files and failures of a manifest, or export it as JSONL",
      load: async () => (await import("./docstokg/status.ts")).status,
    },
    {
      name: "retry",
      summary: "continue the unfinished works of a manifest; with --failed, retry failed works too",
      load: async () => (await import("./docstokg/retry.ts")).retry,
    },
    {
      name: "export",
      summary: "write the works of a manifest with their metadata as CSV, JSONL, CSL-JSON, BibTeX or Parquet",
      load: async () => (await import("./docstokg/export.ts")).exportCommand,
    },
    {
      name: "verify",
      summary: "compute the hashes of all files again and compare them with the manifest",
      load: async () => (await import("./docstokg/verify.ts")).verify,
    },
    {
      name: "manifest",
      summary: "copy a manifest from a file to PostgreSQL or back",
      load: async () => (await import("./docstokg/manifest.ts")).manifestCommand,
    },
    {
      name: "demo",
      summary: "run against a simulated internet on this machine, without network access",
      load: async () => (await import("./docstokg/demo.ts")).demo,
    },
    {
      name: "report",
      summary: "summarise the telemetry of a run",
      load: async () => (await import("./docstokg/report.ts")).report,
    },
    {
      name: "doctor",
      summary: "check Node, policy, store, clock, proxy, identification and disk, and say what to change",
      load: async () => (await import("./docstokg/doctor.ts")).doctor,
    },
    {
      name: "policy",
      summary: "show, explain and check rate limits and breaker settings",
      load: async () => (await import("./docstokg/policy.ts")).policy,
    },
    {
      name: "breaker",
      summary: "show, open and close the circuits of running processes",
      load: async () => (await import("./docstokg/breaker.ts")).breaker,
    },
    {
      name: "limits",
      summary: "show the rate limits of running processes, hold hosts and change rates",
      load: async () => (await import("./docstokg/limits.ts")).limits,
    },
    {
      name: "dashboard",
      summary: "serve a live page about running processes, to see and steer them in a browser",
      load: async () => (await import("./docstokg/dashboard.ts")).dashboard,
    },
    {
      name: "why",
      summary: "explain what would happen to a request now (served from the cache, sent, delayed or refused) and why",
      load: async () => (await import("./docstokg/why.ts")).why,
    },
    {
      name: "completion",
      summary: "print a completion script for bash, zsh or fish",
      load: async () => (await import("./completion.ts")).completion(docstokg),
    },
  ],
};

export const main = (process: NodeJS.Process): Promise<void> => runAsProcess(docstokg, process);
