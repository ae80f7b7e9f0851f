import type { SimulatedWork } from "./catalogue.ts";
import type { Ledger } from "./ledger.ts";
import type { SimulatedOntology } from "./ontology-catalogue.ts";
import { checkStep, type ScriptStep } from "./script-step.ts";
import type { WorkerOptions } from "./servers-messages.ts";
import { ServersThread } from "./servers-thread.ts";

/** Options of `startInternet`. */
export interface InternetOptions {
  /** The same seed makes the same works, files and services; 0 to 4294967295. @default 1 */
  readonly seed?: number | undefined;
  /** How many works exist, 0 to 100000. From 32 on every scenario occurs. @default 60 */
  readonly works?: number | undefined;
  /** Approximate size of the files of the ontology `titan`, 10_000 to 4_000_000_000 bytes. @default 500_000_000 */
  readonly bigOntologyBytes?: number | undefined;
  /** Faults that are active from the start: outages, throttling, slow or truncated responses. @default none */
  readonly script?: readonly ScriptStep[] | undefined;
}

/** A step that `Internet.start` has started. */
export interface StartedStep {
  /** Ends the step. Requests that arrive later are not affected. */
  stop(): Promise<void>;
}

/** A running simulated internet. */
export interface Internet {
  /** Pass it to `createHub({ network })`: it connects every host to loopback and trusts the certificate. */
  readonly network: {
    /** The ports on loopback, for `network.connectTo`. */
    readonly connectTo: readonly string[];
    /** For `network.tls`. */
    readonly tls: {
      /** The certificate of all simulated hosts, in PEM. */
      readonly ca: string;
    };
  };
  /**
   * The simulated hosts. A request to another host gets status 421, or fails because the certificate does not name it.
   */
  readonly hosts: readonly string[];
  /** Every work, with its files, its copies and what a harvester should achieve. */
  readonly works: readonly SimulatedWork[];
  /** Every ontology, with its files and redirects. */
  readonly ontologies: readonly SimulatedOntology[];
  /**
   * Starts a step; it lasts until it is stopped, or until its own `untilMs` or `times`.
   * @throws TypeError if it is invalid.
   */
  start(step: ScriptStep): Promise<StartedStep>;
  /** The counts of the servers so far. */
  ledger(): Promise<Ledger>;
  /** Closes the servers and their thread. May be called again. Without it the process does not end. */
  close(): Promise<void>;
}

/**
 * Starts a simulation of scholarly services and their hosts on loopback. It runs in its own thread, so that a blocked
 * event loop of the caller does not stop its clock. No request leaves the machine.
 * @throws RangeError or TypeError for an invalid option.
 */
export async function startInternet(options: InternetOptions = {}): Promise<Internet> {
  const servers = new ServersThread(checkedOptions(options));
  const { tlsPort, plainPort, ca, hosts, works, ontologies } = await servers.ready;
  return {
    network: { connectTo: [`:443:127.0.0.1:${tlsPort}`, `:80:127.0.0.1:${plainPort}`], tls: { ca } },
    hosts,
    works,
    ontologies,
    start: async step => {
      checkStep(step);
      const number = (await servers.send({ kind: "start", step })) as number;
      return { stop: async () => void (await servers.send({ kind: "stop", number })) };
    },
    ledger: async () => (await servers.send({ kind: "ledger" })) as Ledger,
    close: () => servers.close(),
  };
}

function checkedOptions({
  seed = 1,
  works = 60,
  bigOntologyBytes = 500_000_000,
  script = [],
}: InternetOptions): WorkerOptions {
  checkWholeNumber("seed", seed, 0, 0xffff_ffff);
  checkWholeNumber("works", works, 0, 100_000);
  checkWholeNumber("bigOntologyBytes", bigOntologyBytes, 10_000, 4_000_000_000);
  for (const step of script) checkStep(step);
  return { seed, works, bigOntologyBytes, script };
}

function checkWholeNumber(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new RangeError(`${name} is ${value}; expected a whole number from ${least} to ${most}`);
}
