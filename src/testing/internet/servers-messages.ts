/** What the thread of the servers and the thread of the test tell each other. */
import type { SimulatedWork } from "./catalogue.ts";
import type { WorldOptions } from "./host-directory.ts";
import type { Ledger } from "./ledger.ts";
import type { SimulatedOntology } from "./ontology-catalogue.ts";
import type { Act } from "./script-runner.ts";

export interface WorkerOptions extends WorldOptions {
  readonly script: readonly Act[];
}

/** The first message of the worker. */
export interface Ready {
  readonly tlsPort: number;
  readonly plainPort: number;
  readonly ca: string;
  readonly hosts: readonly string[];
  readonly works: readonly SimulatedWork[];
  readonly ontologies: readonly SimulatedOntology[];
}

export type Order =
  | { readonly kind: "ledger" }
  | { readonly kind: "play"; readonly act: Act }
  | { readonly kind: "stop"; readonly number: number }
  | { readonly kind: "close" };

export type Numbered = Order & { readonly id: number };

/** To the order of the same `id`. */
export interface Response {
  readonly id: number;
  readonly result: Ledger | number | undefined;
}
