import { existsSync } from "node:fs";
import type { Command } from "commander";
import { nearest } from "../../core/text/nearest.ts";
import { quote } from "../../core/text/quote.ts";
import { ConfigError, type ConfigProblem, messageOf } from "../../errors.ts";
import { makeFolder } from "../../files/make-folder.ts";
import { isS3Url } from "../../files/s3/s3-url.ts";
import { FILE_KINDS, type FileKind } from "../../harvest/downloads/file-check.ts";
import { LAYOUTS, type Layout, layoutProblem } from "../../harvest/downloads/layout.ts";
import { METADATA_FORMATS, type MetadataFormat } from "../../harvest/downloads/metadata-file.ts";
import { missingVariables, RESOLVERS } from "../../harvest/resolvers/order.ts";
import type { Resolver } from "../../harvest/resolvers/resolver.ts";
import { RUN_DEFAULTS } from "../../harvest/run.ts";
import type { HubOptions } from "../../http/hub-options.ts";
import { ConnectTo } from "../../http/wire/connect-to.ts";
import { addressProblem } from "../../policy/placeholder-values.ts";
import { folderProblem } from "../file-problems.ts";
import { WATCH_POLICY_FLAG } from "../policy-reloader.ts";
import type { Flags, Io } from "../program.ts";
import { usageError, wholeNumberProblem } from "../usage-error.ts";
import { trustedCertificates } from "./ca-file.ts";
import { addFolderFlag, addManifestFlag, pathsOf, type RunPaths, telemetryFolderOf } from "./path-flags.ts";
import { addPolicyFlags } from "./policy-flags.ts";
import { RUN_FLAG_DEFAULTS } from "./run-flags.ts";

const PORT_MAX = 65_535;

/** The checked flags of `run` and `retry`. */
export interface RunSettings extends RunPaths {
  readonly layout: Layout;
  readonly formats: readonly FileKind[] | "all";
  readonly resolvers: readonly Resolver[];
  readonly workers: number;
  readonly maxBytes: number;
  readonly maxBreakerWaitMs: number;
  readonly minBytesPerSecond: number;
  readonly metadata: MetadataFormat | undefined;
  readonly mailto: string | undefined;
  readonly allowPrivate: boolean;
  readonly connectTo: readonly string[];
  /** All certificates to trust, in PEM; undefined for those of Node. */
  readonly ca: string | undefined;
  readonly cache: HubOptions["cache"];
  /** Whether telemetry is recorded for `docstokg report`. */
  readonly keepsTelemetry: boolean;
  /** The port of 127.0.0.1 that serves Prometheus metrics; undefined for none. */
  readonly metricsPort: number | undefined;
  /** The port of 127.0.0.1 that serves the live page of the run; undefined for none. */
  readonly dashboardPort: number | undefined;
  readonly isQuiet: boolean;
  readonly isJson: boolean;
}

export interface RunFlagOptions {
  /** What `--quiet` leaves out. */
  readonly quiet: string;
  /** Whether the settings of the latest run are the defaults: see `continuedFlags`. */
  readonly continues: boolean;
}

/** The flags that `run` and `retry` share, policy flags included. */
export function addRunFlags(command: Command, { quiet, continues }: RunFlagOptions): void {
  const { formats, maxBytes, patience, minSpeed } = RUN_FLAG_DEFAULTS;
  const latest = "that of the latest run";
  const ofLatest = continues ? ` (default: ${latest})` : "";
  const value = (text: string) => (continues ? undefined : text);
  addFolderFlag(command);
  addManifestFlag(command);
  command
    .option(
      "--layout <layout>",
      `file naming: ${LAYOUTS.join(", ")}, or a template such as {year}/{doi}.{ext} ` +
        `(default: ${continues ? latest : "flat; in S3 content-addressed"})`,
    )
    .option(
      "--formats <list>",
      `file formats, in order of preference: ${FILE_KINDS.join(", ")}; or all, for every file of a work${ofLatest}`,
      value(formats),
    )
    .option(
      "--metadata <format>",
      `write metadata beside each file: ${METADATA_FORMATS.join(", ")} (default: ${continues ? latest : "none"})`,
    )
    .option(
      "--resolvers <list>",
      `resolvers to use, comma-separated: ${RESOLVERS.map(({ name }) => name).join(", ")} ` +
        `(default: ${continues ? latest : "all"})`,
    )
    .option("--max-bytes <count>", `maximum file size in bytes${ofLatest}`, value(maxBytes))
    .option(
      "--patience <seconds>",
      "longest time that a work waits for open circuits and cooldowns, and that the run waits for spent quotas when no other " +
        `work is left${ofLatest}`,
      value(patience),
    )
    .option(
      "--min-speed <bytes>",
      `lowest speed of a download in bytes per second; a download that is slower for 30 s is interrupted${ofLatest}`,
      value(minSpeed),
    );
  addMachineFlags(command, quiet);
}

/** The flags that belong to a machine and not to a run: `worker` has them too. */
export function addMachineFlags(command: Command, quiet: string): void {
  const collect = (value: string, list: readonly string[] = []) => [...list, value];
  command
    .option("--workers <count>", "maximum concurrent requests", String(RUN_DEFAULTS.workers))
    .option("--mailto <address>", "contact email address sent to services (default: DOCSTOKG_MAILTO)")
    .option("--cache <cache>", "HTTP cache: memory, off or sqlite:<file>", "memory")
    .option("--allow-private", "allow requests to private network addresses")
    .option(
      "--connect-to <host:port:address:port>",
      "connect to address:port instead of host:port, as curl does; repeatable",
      collect,
    )
    .option("--ca <file>", "PEM file with CA certificates to trust in addition to those of Node")
    .option("--no-telemetry", "do not record telemetry for docstokg report")
    .option(
      "--metrics-port <port>",
      "serve Prometheus metrics on 127.0.0.1:<port>; 0 for any free port; needs the package prom-client (default: not served)",
    )
    .option(
      "--dashboard-port <port>",
      "serve a live page, to see and steer the run, on 127.0.0.1:<port>; 0 for any free port (default: not served)",
    )
    .option(...WATCH_POLICY_FLAG)
    .option("-q, --quiet", quiet)
    .option("--json", "print the summary as JSON");
  addPolicyFlags(command);
}

/** The folders that a run writes to, and the flags that name them. */
function foldersOf(paths: RunPaths): readonly (readonly [flag: string, path: string])[] {
  const output = isS3Url(paths.folder) ? [] : [["--out", paths.folder] as const];
  return [...output, ["--manifest", telemetryFolderOf(paths)]];
}

/** Creates the folders of a run. A path that cannot be a folder must fail before the first request. */
export function makeFolders(paths: RunPaths): void {
  for (const [flag, path] of foldersOf(paths)) {
    try {
      makeFolder(path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const isFile = code === "EEXIST" || code === "ENOTDIR";
      const message = isFile ? `${path} is not a folder` : `cannot create folder ${path} (${code})`;
      throw usageError(flag, message, { cause: error });
    }
  }
  checkFolders(paths);
}

/** A folder that cannot be written is reported under its flag, and not as a file in it that cannot be opened. */
export function checkFolders(paths: RunPaths): void {
  for (const [flag, path] of foldersOf(paths)) {
    const problem = existsSync(path) ? folderProblem(path) : undefined;
    if (problem !== undefined) throw usageError(flag, problem);
  }
}

/** Throws one ConfigError that lists every invalid flag. */
export function runSettingsOf(flags: Flags, io: Pick<Io, "env">): RunSettings {
  const problems: ConfigProblem[] = [];
  const addProblem = (where: string, message: string) => problems.push({ where, path: "", message });
  const wholeNumber = (flag: string, value: unknown, min: number, max?: number): number => {
    const problem = wholeNumberProblem(value, min, max);
    if (problem !== undefined) addProblem(flag, problem);
    return Number(value);
  };
  const paths = pathsOf(flags, io);
  const layout = String(flags["layout"] ?? (isS3Url(paths.folder) ? "content-addressed" : RUN_DEFAULTS.layout));
  const problem = layoutProblem(layout);
  if (isS3Url(paths.folder) && problem === undefined && layout !== "content-addressed")
    addProblem(
      "--layout",
      "files in S3 are content-addressed; another layout would need a rename, which S3 does not have",
    );
  if (problem !== undefined) addProblem("--layout", problem);
  const settings: RunSettings = {
    ...paths,
    layout: layout as Layout,
    formats: formatsOf(String(flags["formats"]), addProblem),
    resolvers:
      flags["resolvers"] === undefined
        ? RESOLVERS
        : chosenItems("--resolvers", String(flags["resolvers"]), RESOLVERS, ({ name }) => name, addProblem),
    workers: wholeNumber("--workers", flags["workers"], 1),
    maxBytes: wholeNumber("--max-bytes", flags["maxBytes"], 1),
    maxBreakerWaitMs: wholeNumber("--patience", flags["patience"], 0) * 1000,
    metadata: metadataOf(flags["metadata"], addProblem),
    minBytesPerSecond: wholeNumber("--min-speed", flags["minSpeed"], 0),
    mailto: addressOf(flags["mailto"], addProblem),
    allowPrivate: flags["allowPrivate"] === true,
    connectTo: checkedMappings((flags["connectTo"] as readonly string[] | undefined) ?? [], addProblem),
    ca: certificatesOf(flags["ca"] as string | undefined, addProblem),
    cache: cacheOf(String(flags["cache"]), addProblem),
    keepsTelemetry: flags["telemetry"] !== false,
    metricsPort:
      flags["metricsPort"] === undefined ? undefined : wholeNumber("--metrics-port", flags["metricsPort"], 0, PORT_MAX),
    dashboardPort:
      flags["dashboardPort"] === undefined
        ? undefined
        : wholeNumber("--dashboard-port", flags["dashboardPort"], 0, PORT_MAX),
    isQuiet: flags["quiet"] === true,
    isJson: flags["json"] === true,
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return settings;
}

function formatsOf(text: string, addProblem: (where: string, message: string) => void): RunSettings["formats"] {
  const names = text.split(",").map(name => name.trim());
  if (!names.includes("all")) return chosenItems("--formats", text, FILE_KINDS, each => each, addProblem);
  if (names.length > 1) addProblem("--formats", "all cannot be combined with other formats: it includes every format");
  return "all";
}

function chosenItems<Item>(
  flag: string,
  text: string,
  all: readonly Item[],
  nameOf: (item: Item) => string,
  addProblem: (where: string, message: string) => void,
): readonly Item[] {
  const names = new Set(text.split(",").map(name => name.trim()));
  return [...names].flatMap(name => {
    const item = all.find(each => nameOf(each) === name);
    if (item !== undefined) return [item];
    addProblem(flag, notOneOf(name, all.map(nameOf)));
    return [];
  });
}

function metadataOf(text: unknown, addProblem: (where: string, message: string) => void): MetadataFormat | undefined {
  const format = METADATA_FORMATS.find(each => each === text);
  if (text !== undefined && format === undefined) addProblem("--metadata", notOneOf(String(text), METADATA_FORMATS));
  return format;
}

/** An empty address is a choice: none is sent. Checked here too, so that the message names the flag. */
function addressOf(text: unknown, addProblem: (where: string, message: string) => void): string | undefined {
  if (typeof text !== "string") return undefined;
  const problem = text === "" ? undefined : addressProblem(text);
  if (problem !== undefined) addProblem("--mailto", problem);
  return text;
}

function notOneOf(name: string, all: readonly string[]): string {
  const near = nearest(name, all);
  return `${JSON.stringify(name)} is not one of ${all.join(", ")}${near === undefined ? "" : `; did you mean ${near}?`}`;
}

function certificatesOf(
  file: string | undefined,
  addProblem: (where: string, message: string) => void,
): string | undefined {
  if (file === undefined) return undefined;
  try {
    return trustedCertificates(file);
  } catch (error) {
    addProblem("--ca", messageOf(error));
    return undefined;
  }
}

/** Parsed here too, so that an invalid mapping is reported with the other flags, before the run starts. */
function checkedMappings(
  entries: readonly string[],
  addProblem: (where: string, message: string) => void,
): readonly string[] {
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
  addProblem("--cache", `${quote(text)} is not one of memory, off, sqlite:<file>`);
  return undefined;
}

/** The resolvers of the settings, without those that need an environment variable that is not set. */
export function usableResolvers(settings: RunSettings, io: Io): RunSettings["resolvers"] {
  return settings.resolvers.filter(resolver => {
    const missing = missingVariables(resolver, { env: io.env, mailto: settings.mailto });
    if (missing.length === 0) return true;
    const wanted = missing.map(variable => (variable === "DOCSTOKG_MAILTO" ? `${variable} or --mailto` : variable));
    io.stderr.write(`resolver ${resolver.name} skipped: set ${wanted.join(" and ")}\n`);
    return false;
  });
}
