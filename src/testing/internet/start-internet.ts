import type { SimulatedWork } from "./catalogue.ts";
import type { Ledger } from "./ledger.ts";
import type { SimulatedOntology } from "./ontology-catalogue.ts";
import { checkStep, type ScriptStep } from "./script-runner.ts";
import type { WorkerOptions } from "./servers-messages.ts";
import { ServersThread } from "./servers-thread.ts";

export interface InternetOptions {
  /** The same seed makes the same internet. @default 1 */
  readonly seed?: number | undefined;
  /** How many works there are. @default 60 */
  readonly works?: number | undefined;
  /** About how long the files of the ontology `titan` are; they are made while they are sent. @default 500_000_000 */
  readonly bigOntologyBytes?: number | undefined;
  /** What befalls its hosts, from the start. @default nothing */
  readonly script?: readonly ScriptStep[] | undefined;
}

/** An act that was started by hand. */
export interface StartedStep {
  stop(): Promise<void>;
}

export interface Internet {
  /** For `createHub({ network })`: every host is on loopback, and its certificate is trusted. */
  readonly network: { readonly connectTo: readonly string[]; readonly tls: { readonly ca: string } };
  /** All that answer; whoever calls another is told 421, or that the certificate is not for it. */
  readonly hosts: readonly string[];
  /** What there is, and what can be had. */
  readonly works: readonly SimulatedWork[];
  readonly ontologies: readonly SimulatedOntology[];
  /** Starts an act; it lasts until it is stopped, or as long as it says. */
  start(act: ScriptStep): Promise<StartedStep>;
  ledger(): Promise<Ledger>;
  close(): Promise<void>;
}

/**
 * A scholarly internet on loopback. It runs in a thread of its own, so that a stall of the caller's event loop does not
 * stop its clock. Nothing of it leaves the machine.
 */
export async function startInternet(options: InternetOptions = {}): Promise<Internet> {
  const servers = new ServersThread(checked(options));
  const { tlsPort, plainPort, ca, hosts, works, ontologies } = await servers.ready;
  return {
    network: { connectTo: [`:443:127.0.0.1:${tlsPort}`, `:80:127.0.0.1:${plainPort}`], tls: { ca } },
    hosts,
    works,
    ontologies,
    start: async act => {
      checkStep(act);
      const number = (await servers.send({ kind: "start", act })) as number;
      return { stop: async () => void (await servers.send({ kind: "stop", number })) };
    },
    ledger: async () => (await servers.send({ kind: "ledger" })) as Ledger,
    close: () => servers.close(),
  };
}

function checked({
  seed = 1,
  works = 60,
  bigOntologyBytes = 500_000_000,
  script = [],
}: InternetOptions): WorkerOptions {
  wholeNumber("seed", seed, 0, 0xffff_ffff);
  wholeNumber("works", works, 0, 100_000);
  wholeNumber("bigOntologyBytes", bigOntologyBytes, 10_000, 4_000_000_000);
  for (const act of script) checkStep(act);
  return { seed, works, bigOntologyBytes, script };
}

function wholeNumber(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new RangeError(`${name}: ${value} is not a whole number from ${least} to ${most}`);
}
