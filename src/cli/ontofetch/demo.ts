import { mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ontofetch, type OntofetchOptions } from "../../ontology/ontofetch.ts";
import { loadOntofetchSettings } from "../../ontology/ontofetch-settings.ts";
import type { PullResult } from "../../ontology/pull-result.ts";
import { type Internet, startInternet } from "../../testing/internet/start-internet.ts";
import { ExitCode } from "../exit-code.ts";
import { interruptedDemoText, interruptible } from "../interrupts.ts";
import { formatBytes } from "../output/format.ts";
import type { CommandModule, Io } from "../program.ts";
import { printPlan } from "./plan.ts";
import { resultLine, resumeLine } from "./pull.ts";
import { validate } from "./validate.ts";

const SOURCES = `version: 1
ratelimit: { default: 8/second, shared_dir: shared }
sources:
  reed: { resolver: obo, target_formats: [obo] }        # by a permanent URL, over three hosts
  marsh: { resolver: obo, target_formats: [owl] }       # a release behind a signed URL
  alder: { resolver: obo, target_formats: [owl] }       # the server drops the connection half-way
  finch: { resolver: ols }
  fern: { resolver: bioregistry, target_formats: [json] }
  badger: { resolver: bioportal }                       # comes as a zip
  heron: { resolver: bioportal }                        # its licence permits no download
  lichen: { resolver: ols }                             # has no public URL
`;
const BIG_SOURCE = `  titan: { resolver: direct, extras: { url: "https://files.ontologies.example/titan.obo" } }\n`;
const BIG_BYTES = 20_000_000;
const FILE_HOSTS = [
  "current.geneontology.org",
  "release-assets.githubusercontent.com",
  "ftp.ebi.ac.uk",
  "files.ontologies.example",
];

/** `ontofetch demo`: plans and pulls against a simulated internet in this process. */
export const demo: CommandModule = {
  configure: command => {
    command.option("--keep", "keep the output folder");
  },
  run: (_, flags, io) =>
    interruptible(io, async signal => {
      const isKept = flags["keep"] === true;
      const folder = await mkdtemp(join(tmpdir(), "ontofetch-demo-"));
      let internet: Internet | undefined;
      let isComplete = false;
      try {
        internet = await startInternet({ works: 0, bigOntologyBytes: BIG_BYTES });
        const exitCode = await new Demo(folder, internet, io, signal).run();
        isComplete = !signal.aborted;
        return exitCode;
      } finally {
        await internet?.close();
        if (!isKept) await rm(folder, { recursive: true, force: true, maxRetries: 3 });
        if (signal.aborted && !isComplete) io.stderr.write(`\n${interruptedDemoText(isKept)}\n`);
        if (isKept) io.stdout.write(`\nFiles: ${folder}\n`);
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

  async run(): Promise<ExitCode> {
    this.#title("sources.yaml");
    this.#print(SOURCES);
    await writeFile(join(this.#folder, "sources.yaml"), SOURCES);

    this.#title("ontofetch plan: URLs, sizes, licences");
    await this.#withOntofetch({}, async ontofetch =>
      printPlan(await ontofetch.plan(ontofetch.settings.sources), this.#io),
    );

    this.#title("ontofetch pull: fetched, validated, stored and locked");
    const first = await this.#pull();

    this.#title("ontofetch pull, again: every server answers 304, no file is sent");
    const sentBefore = await this.#filesSent();
    const second = await this.#pull();
    this.#print(`${(await this.#filesSent()) - sentBefore} files were sent\n`);

    this.#title(
      `A ${formatBytes(BIG_BYTES)} file interrupted half-way: no partial file is stored, the download resumes`,
    );
    await writeFile(join(this.#folder, "sources.yaml"), `${SOURCES}${BIG_SOURCE}`);
    const third = await this.#pullWithInterrupt();

    this.#title("A truncated stored file: detected, and restored from the locked URL");
    const isRestored = await this.#truncateAndRestore(third);

    const { requests, rejected } = await this.#internet.ledger();
    this.#title(`${requests} requests, ${rejected} of them rejected by a server's limit`);
    const isSuccess =
      rejected === 0 &&
      first.filter(({ outcome }) => outcome === "fetched").length === 6 &&
      second.filter(({ outcome }) => outcome === "unchanged").length === 6 &&
      third?.outcome === "fetched" &&
      isRestored;
    return isSuccess ? ExitCode.ok : ExitCode.partial;
  }

  /** Opens and closes an Ontofetch for each step, as separate commands would. */
  async #withOntofetch<Result>(
    options: Partial<OntofetchOptions>,
    work: (ontofetch: Ontofetch) => Promise<Result>,
  ): Promise<Result> {
    const settings = await loadOntofetchSettings({}, {}, this.#folder);
    const ontofetch = await Ontofetch.open(settings, {
      env: { BIOPORTAL_API_KEY: "a-key-of-the-demo" },
      network: this.#internet.network,
      signal: this.#signal,
      onResume: (...about) => this.#print(`${resumeLine(...about)}\n`),
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
    return this.#withOntofetch(options, ontofetch =>
      ontofetch.pull(
        ontofetch.settings.sources.filter(({ id }) => ids?.includes(id) ?? true),
        { all: ids === undefined, frozen: isFrozen, onResult: result => this.#print(`${resultLine(result)}\n`) },
      ),
    );
  }

  async #pullWithInterrupt(): Promise<PullResult | undefined> {
    const controller = new AbortController();
    const half = BIG_BYTES / 2;
    try {
      await this.#pull(["titan"], false, {
        signal: AbortSignal.any([this.#signal, controller.signal]),
        onBytes: (id, bytes) => {
          if (bytes < half || controller.signal.aborted) return;
          this.#print(`${id}: ${formatBytes(bytes)} received; simulating Ctrl-C\n`);
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

  /** True if validate detects the truncated file and a frozen pull restores it. */
  async #truncateAndRestore(result: PullResult | undefined): Promise<boolean> {
    if (result === undefined || result.outcome === "failed") return false;
    const { path, manifest } = result.stored;
    await truncate(path, Math.floor(manifest.bytes / 3));
    const flags = { sources: join(this.#folder, "sources.yaml") };
    // Not by a spread, which would read the getter `stdin` and open stdin.
    const io: Io = Object.create(this.#io, { env: { value: {} }, stderr: { value: this.#io.stdout } });
    const verdict = await validate.run(["titan"], flags, io);
    const [restored] = await this.#pull(["titan"], true);
    const { length } = await readFile(path);
    return verdict === ExitCode.partial && restored?.outcome === "fetched" && length === manifest.bytes;
  }

  /** Responses with a file, or a part of one, from the hosts that serve only files. */
  async #filesSent(): Promise<number> {
    const { hosts } = await this.#internet.ledger();
    const statuses = FILE_HOSTS.map(host => hosts[host]?.statuses ?? {});
    return statuses.reduce((sum, { 200: complete = 0, 206: partial = 0 }) => sum + complete + partial, 0);
  }

  #title(text: string): void {
    this.#print(`\n== ${text}\n\n`);
  }

  #print(text: string): void {
    this.#io.stdout.write(text);
  }
}
