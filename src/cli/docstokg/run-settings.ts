import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { nearest } from "../../core/text/nearest.ts";
import { ConfigError, type ConfigProblem } from "../../errors.ts";
import type { FileKind } from "../../harvest/downloads/file-check.ts";
import { isLayout, LAYOUTS, type Layout } from "../../harvest/downloads/layout.ts";
import { INPUT_FORMATS, type InputFormat } from "../../harvest/inputs/inputs.ts";
import { RESOLVERS } from "../../harvest/resolvers/order.ts";
import type { Resolver } from "../../harvest/resolvers/resolver.ts";
import { RUN_DEFAULTS } from "../../harvest/run.ts";
import type { HubOptions } from "../../http/hub-options.ts";
import { ConnectTo } from "../../http/wire/connect-to.ts";
import { addPolicyFlags } from "./policy-flags.ts";

const PORT_MAX = 65_535;
const FORMATS: readonly FileKind[] = ["pdf", "xml", "html"];

/** What a run is told on its command line, checked. */
export interface RunSettings {
  readonly folder: string;
  readonly manifest: string;
  readonly layout: Layout;
  readonly formats: readonly FileKind[];
  readonly resolvers: readonly Resolver[];
  readonly workers: number;
  readonly maxBytes: number;
  readonly maxBreakerWaitMs: number;
  readonly mailto: string | undefined;
  readonly allowPrivate: boolean;
  readonly connectTo: readonly string[];
  readonly ca: string | undefined;
  readonly cache: HubOptions["cache"];
  /** Whether what happens is kept for `docstokg report`. */
  readonly keepsTelemetry: boolean;
  /** A port of loopback where metrics are served. */
  readonly metricsPort: number | undefined;
  readonly isQuiet: boolean;
  readonly isJson: boolean;
}

/** The flags of everything that gets files; those of the policy among them. */
export function addRunFlags(command: Command): void {
  const { workers, maxBytes, maxBreakerWaitMs } = RUN_DEFAULTS;
  const collect = (value: string, list: readonly string[] = []) => [...list, value];
  addPathFlags(command);
  command
    .option("--layout <layout>", `how files are named: ${LAYOUTS.join(", ")}`, RUN_DEFAULTS.layout)
    .option("--formats <list>", `which files are wanted, the best first: ${FORMATS.join(", ")}`, "pdf,xml")
    .option("--resolvers <list>", "whom to ask, by name; all unless given")
    .option("--workers <count>", "requests under way at a time", String(workers))
    .option("--max-bytes <count>", "the largest file that is taken", String(maxBytes))
    .option("--patience <seconds>", "how long a work waits for hosts that are cut off", String(maxBreakerWaitMs / 1000))
    .option("--mailto <address>", "whom services may write to; DOCSTOKG_MAILTO otherwise")
    .option("--cache <place>", "what services answered: memory, off or sqlite:<file>", "memory")
    .option("--allow-private", "also fetch from addresses of private networks")
    .option("--connect-to <host:port:address:port>", "connect there instead, as curl does", collect)
    .option("--ca <file>", "a certificate to trust, as PEM")
    .option("--no-telemetry", "keep no record of requests, waits and cut-offs for docstokg report")
    .option("--metrics-port <port>", "serve metrics for Prometheus on this port of 127.0.0.1, 0 for any")
    .option("-q, --quiet", "print neither the policy nor the progress")
    .option("--json", "print the summary as JSON");
  addPolicyFlags(command);
}

/** Where things are; the same for `status`. */
export function addPathFlags(command: Command): void {
  command
    .option("-o, --out <folder>", "where files go", "papers")
    .option("--manifest <file>", "the record of everything; manifest.sqlite in the folder unless given");
}

export function pathsOf(options: Readonly<Record<string, unknown>>): {
  readonly folder: string;
  readonly manifest: string;
} {
  const folder = resolve(String(options["out"]));
  const manifest = options["manifest"];
  return { folder, manifest: typeof manifest === "string" ? resolve(manifest) : join(folder, "manifest.sqlite") };
}

/** Makes the folders of a run, before anything else is done. */
export function makeFolders({ folder, manifest }: Pick<RunSettings, "folder" | "manifest">): void {
  for (const [flag, path] of [
    ["--out", folder],
    ["--manifest", dirname(manifest)],
  ] as const) {
    try {
      mkdirSync(path, { recursive: true });
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const isInTheWay = code === "EEXIST" || code === "ENOTDIR";
      const message = isInTheWay ? `${path} is no folder` : `the folder ${path} cannot be made (${code})`;
      throw new ConfigError([{ where: flag, path: "", message }], { cause: error });
    }
  }
}

/** Throws a ConfigError that lists everything wrong. */
export function runSettingsOf(options: Readonly<Record<string, unknown>>): RunSettings {
  const problems: ConfigProblem[] = [];
  const addProblem = (where: string, message: string) => problems.push({ where, path: "", message });
  const whole = (flag: string, value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): number => {
    const number = Number(value);
    const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
    if (!Number.isSafeInteger(number) || number < least || number > most || String(value).trim() === "")
      addProblem(flag, `${JSON.stringify(value)} is no whole number ${range}`);
    return number;
  };
  const layout = String(options["layout"]);
  if (!isLayout(layout)) addProblem("--layout", `${JSON.stringify(layout)} is none of ${LAYOUTS.join(", ")}`);
  const settings: RunSettings = {
    ...pathsOf(options),
    layout: layout as Layout,
    formats: chosen("--formats", String(options["formats"]), FORMATS, each => each, addProblem),
    resolvers:
      options["resolvers"] === undefined
        ? RESOLVERS
        : chosen("--resolvers", String(options["resolvers"]), RESOLVERS, ({ name }) => name, addProblem),
    workers: whole("--workers", options["workers"], 1),
    maxBytes: whole("--max-bytes", options["maxBytes"], 1),
    maxBreakerWaitMs: whole("--patience", options["patience"], 0) * 1000,
    mailto: options["mailto"] as string | undefined,
    allowPrivate: options["allowPrivate"] === true,
    connectTo: mappings((options["connectTo"] as readonly string[] | undefined) ?? [], addProblem),
    ca: certificate(options["ca"] as string | undefined, addProblem),
    cache: cacheOf(String(options["cache"]), addProblem),
    keepsTelemetry: options["telemetry"] !== false,
    metricsPort:
      options["metricsPort"] === undefined ? undefined : whole("--metrics-port", options["metricsPort"], 0, PORT_MAX),
    isQuiet: options["quiet"] === true,
    isJson: options["json"] === true,
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return settings;
}

export function inputFormatOf(text: string | undefined): InputFormat | undefined {
  if (text === undefined || (INPUT_FORMATS as readonly string[]).includes(text)) return text as InputFormat | undefined;
  const message = `${JSON.stringify(text)} is none of ${INPUT_FORMATS.join(", ")}`;
  throw new ConfigError([{ where: "--input-format", path: "", message }]);
}

function chosen<Item>(
  flag: string,
  text: string,
  all: readonly Item[],
  nameOf: (item: Item) => string,
  addProblem: (where: string, message: string) => void,
): readonly Item[] {
  const names = text.split(",").map(name => name.trim());
  return names.flatMap(name => {
    const item = all.find(each => nameOf(each) === name);
    if (item !== undefined) return [item];
    const near = nearest(name, all.map(nameOf));
    addProblem(
      flag,
      `${JSON.stringify(name)} is none of ${all.map(nameOf).join(", ")}${near ? `; did you mean ${near}?` : ""}`,
    );
    return [];
  });
}

function certificate(
  file: string | undefined,
  addProblem: (where: string, message: string) => void,
): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    addProblem("--ca", `cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

/** Looked at here, so that nothing is begun with one that leads nowhere. */
function mappings(entries: readonly string[], addProblem: (where: string, message: string) => void): readonly string[] {
  for (const entry of entries) {
    try {
      new ConnectTo([entry]);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      addProblem("--connect-to", error.message.replace(/^connectTo: /, ""));
    }
  }
  return entries;
}

function cacheOf(text: string, addProblem: (where: string, message: string) => void): HubOptions["cache"] {
  if (text === "off") return false;
  if (text === "memory" || /^sqlite:./.test(text)) return text as "memory" | `sqlite:${string}`;
  addProblem("--cache", `${JSON.stringify(text)} is none of memory, off, sqlite:<file>`);
  return undefined;
}
