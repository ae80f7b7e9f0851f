import { mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ontofetch, type OntofetchOptions, type PullResult } from "../../ontology/ontofetch.ts";
import { loadOntofetchSettings } from "../../ontology/ontofetch-settings.ts";
import type { Internet } from "../../testing/internet/start-internet.ts";
import { ExitCode } from "../exit-code.ts";
import type { CliCommand, Io } from "../program.ts";
import { interruptible } from "./interrupt.ts";
import { printPlan } from "./plan.ts";
import { interruptedLine, resultLine } from "./pull.ts";
import { formatSize } from "./settings-flags.ts";
import { validate } from "./validate.ts";

const SOURCES = `version: 1
ratelimit: { default: 8/second, shared_dir: shared }
sources:
  reed: { resolver: obo, target_formats: [obo] }        # by a permanent URL, over three hosts
  marsh: { resolver: obo, target_formats: [owl] }       # a release behind a signed address
  alder: { resolver: obo, target_formats: [owl] }       # its server breaks off half-way
  finch: { resolver: ols }
  fern: { resolver: bioregistry, target_formats: [json] }
  badger: { resolver: bioportal }                       # comes as a zip
  heron: { resolver: bioportal }                        # its licence permits no download
  lichen: { resolver: ols }                             # lies on a disk of the service's own
`;
const BIG = `  titan: { resolver: direct, extras: { url: "https://files.ontologies.example/titan.obo" } }\n`;
const BIG_BYTES = 20_000_000;
const FILE_HOSTS = [
  "current.geneontology.org",
  "release-assets.githubusercontent.com",
  "ftp.ebi.ac.uk",
  "files.ontologies.example",
];

/** `ontofetch demo`: what a plan and a pull look like, at an internet that runs within this process. */
export const demo: CliCommand = {
  name: "demo",
  summary: "plan and pull at a simulated internet; nothing leaves this machine",
  configure: command => command.option("--keep", "leave the folder with its files for you to look at"),
  run: (_args, options, io) =>
    interruptible(async signal => {
      const folder = await mkdtemp(join(tmpdir(), "ontofetch-demo-"));
      // A whole internet, which no other command needs.
      const { startInternet } = await import("../../testing/internet/start-internet.ts");
      const internet = await startInternet({ works: 0, bigOntologyBytes: BIG_BYTES });
      try {
        return await new Demo(folder, internet, io, signal).play();
      } finally {
        await internet.close();
        if (options["keep"]) io.stdout.write(`\nThe files are in ${folder}\n`);
        else await rm(folder, { recursive: true, force: true, maxRetries: 3 });
      }
    }),
};

class Demo {
  readonly #folder: string;
  readonly #internet: Internet;
  readonly #io: Io;
  readonly #signal: AbortSignal;

  constructor(folder: string, internet: Internet, io: Io, signal: AbortSignal) {
    this.#folder = folder;
    this.#internet = internet;
    this.#io = io;
    this.#signal = signal;
  }

  async play(): Promise<ExitCode> {
    this.#title("sources.yaml");
    this.#say(SOURCES);
    await writeFile(join(this.#folder, "sources.yaml"), SOURCES);

    this.#title("ontofetch plan: where they are, how large, under which licence");
    await this.#run({}, async ontofetch => printPlan(await ontofetch.plan(ontofetch.settings.sources), this.#io));

    this.#title("ontofetch pull: fetched, looked at to the last byte, stored and locked");
    const first = await this.#pull();

    this.#title("ontofetch pull, once more: every server says 304, and nothing is sent");
    const before = await this.#filesSent();
    const second = await this.#pull();
    this.#say(`${(await this.#filesSent()) - before} files were sent\n`);

    this.#title(
      `A file of ${formatSize(BIG_BYTES)} that is interrupted half-way: nothing half is stored, and the rest is asked for`,
    );
    await writeFile(join(this.#folder, "sources.yaml"), `${SOURCES}${BIG}`);
    const third = await this.#interrupted();

    this.#title("A stored file that is cut short: refused, and brought back as it was locked");
    const fourth = await this.#cutShort(third);

    const { requests, rejected } = await this.#internet.ledger();
    this.#title(`${requests} requests, ${rejected} of them rejected by a server's limit`);
    const isSuccess =
      rejected === 0 &&
      first.filter(({ outcome }) => outcome === "fetched").length === 6 &&
      second.filter(({ outcome }) => outcome === "unchanged").length === 6 &&
      third?.outcome === "fetched" &&
      fourth;
    return isSuccess ? ExitCode.ok : ExitCode.partial;
  }

  /** A run of its own, as a command would be. */
  async #run<Result>(
    options: Partial<OntofetchOptions>,
    work: (ontofetch: Ontofetch) => Promise<Result>,
  ): Promise<Result> {
    const settings = await loadOntofetchSettings({}, {}, this.#folder);
    const ontofetch = await Ontofetch.open(settings, {
      env: { BIOPORTAL_API_KEY: "a-key-of-the-demo" },
      network: this.#internet.network,
      signal: this.#signal,
      onResume: (...about) => this.#say(`${interruptedLine(...about)}\n`),
      ...options,
    });
    try {
      return await work(ontofetch);
    } finally {
      await ontofetch.close("demo");
    }
  }

  #pull(
    ids?: readonly string[],
    isFrozen = false,
    options: Partial<OntofetchOptions> = {},
  ): Promise<readonly PullResult[]> {
    return this.#run(options, ontofetch =>
      ontofetch.pull(
        ontofetch.settings.sources.filter(({ id }) => ids?.includes(id) ?? true),
        { isAll: ids === undefined, isFrozen, onResult: result => this.#say(`${resultLine(result)}\n`) },
      ),
    );
  }

  async #interrupted(): Promise<PullResult | undefined> {
    const controller = new AbortController();
    const half = BIG_BYTES / 2;
    try {
      await this.#pull(["titan"], false, {
        signal: AbortSignal.any([this.#signal, controller.signal]),
        onBytes: (id, bytes) => {
          if (bytes < half || controller.signal.aborted) return;
          this.#say(`${id}: ${formatSize(bytes)} have come; here comes Ctrl-C\n`);
          controller.abort(new Error("interrupted"));
        },
      });
    } catch (error) {
      this.#signal.throwIfAborted();
      if (!controller.signal.aborted) throw error;
    }
    const [result] = await this.#pull(["titan"]);
    return result;
  }

  /** Whether the damage was noticed, and mended. */
  async #cutShort(result: PullResult | undefined): Promise<boolean> {
    if (result === undefined || result.outcome === "failed") return false;
    const { path, manifest } = result.stored;
    await truncate(path, Math.floor(manifest.bytes / 3));
    const flags = { sources: join(this.#folder, "sources.yaml") };
    const verdict = await validate.run?.(["titan"], flags, { ...this.#io, env: {}, stderr: this.#io.stdout });
    const [restored] = await this.#pull(["titan"], true);
    const { length } = await readFile(path);
    return verdict === ExitCode.partial && restored?.outcome === "fetched" && length === manifest.bytes;
  }

  /** How often hosts that hold nothing but files have sent one, or a part of one. */
  async #filesSent(): Promise<number> {
    const { hosts } = await this.#internet.ledger();
    const statuses = FILE_HOSTS.map(host => hosts[host]?.statuses ?? {});
    return statuses.reduce((sum, { 200: whole = 0, 206: part = 0 }) => sum + whole + part, 0);
  }

  #title(text: string): void {
    this.#say(`\n== ${text}\n\n`);
  }

  #say(text: string): void {
    this.#io.stdout.write(text);
  }
}
