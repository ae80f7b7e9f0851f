/** Messages between the thread that runs the simulated servers and the thread that started them. */
import type { SimulatedWork } from "./catalogue.ts";
import type { HostDirectoryOptions } from "./host-directory.ts";
import type { Ledger } from "./ledger.ts";
import type { SimulatedOntology } from "./ontology-catalogue.ts";
import type { ScriptStep } from "./script-step.ts";

export interface WorkerOptions extends HostDirectoryOptions {
  readonly script: readonly ScriptStep[];
}

/** The first message of the worker. */
export interface ServersReady {
  readonly tlsPort: number;
  readonly plainPort: number;
  readonly ca: string;
  readonly hosts: readonly string[];
  readonly works: readonly SimulatedWork[];
  readonly ontologies: readonly SimulatedOntology[];
}

export type ServersCommand =
  | { readonly kind: "ledger" }
  | { readonly kind: "start"; readonly step: ScriptStep }
  | { readonly kind: "stop"; readonly number: number }
  | { readonly kind: "close" };

export type NumberedCommand = ServersCommand & { readonly id: number };

/** The result of the command with the same `id`. */
export interface CommandResult {
  readonly id: number;
  readonly result: Ledger | number | undefined;
}
