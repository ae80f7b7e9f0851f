import { dirname, resolve } from "node:path";
import { quote } from "../core/text/quote.ts";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { isS3Url, parseS3Url } from "../files/s3/s3-url.ts";
import type { Environment } from "../policy/environment.ts";
import { FILE_NOT_FOUND, readFileLayer } from "../policy/file-layer.ts";
import { type Assignment, assemble } from "../policy/layer.ts";
import { parseMerged } from "../policy/parse-options.ts";
import { SourceIndex } from "../policy/source-index.ts";
import { problemsOf } from "../policy/validation.ts";
import { nameHint } from "./name-hint.ts";
import { readOntofetchEnvironment, SOURCES_VARIABLE } from "./ontofetch-environment.ts";
import type { Source } from "./resolver.ts";
import { SERVICES } from "./resolvers/all.ts";
import { type OntologyRates, type OntologySettings, parseOntologySettings } from "./service-rates.ts";
import { type ReportProblem, sourceOf } from "./source-settings.ts";
import { sourcesSchema } from "./sources-schema.ts";

/** Values of command line flags. Each replaces the environment variable and the key of `sources.yaml`. */
export interface OntofetchFlags {
  /** `--sources`: path of `sources.yaml`. @default ONTOFETCH_SOURCES, else "sources.yaml" */
  readonly sources?: string | undefined;
  /**
   * `--store`: folder of the stored ontologies, or `s3://bucket/prefix`.
   * @default that of `sources.yaml`, else "ontologies"
   */
  readonly store?: string | undefined;
  /** `--lockfile`: path of the lockfile. @default that of `sources.yaml`, else "ontologies.lock.json" */
  readonly lockfile?: string | undefined;
  /** `--check`: `full`, `end` or `none`. @default that of `sources.yaml`, else `full` */
  readonly check?: string | undefined;
  /**
   * `--rate`: the limit of services that have none of their own; `none` for no limit.
   * @default that of `sources.yaml`, else `8/second`
   */
  readonly rate?: string | undefined;
  /**
   * `--rate-per-service`: limits by service, such as `ols:4/second;bioportal:2/second`.
   * @default those of `sources.yaml`
   */
  readonly ratePerService?: string | undefined;
  /**
   * `--shared-dir`: folder through which processes share their limits.
   * @default that of `sources.yaml`, else `.ontofetch` in the store
   */
  readonly sharedDir?: string | undefined;
}

/** The complete settings of `ontofetch`, with defaults filled in. Paths are absolute. */
export interface OntofetchSettings {
  /** The `sources.yaml` that was read. */
  readonly file: string;
  /** The folder of the stored ontologies, or `s3://bucket/prefix`. @default "ontologies" beside `sources.yaml` */
  readonly store: string;
  /** The file with the versions and hashes of the last pull. @default "ontologies.lock.json" beside `sources.yaml` */
  readonly lockfile: string;
  /**
   * How a downloaded file is checked. `full`: a parser reads all of it. `end`: a parser reads its beginning, and its last
   * characters are checked. `none`: a parser reads its beginning. A source with `imports` is always checked fully.
   * @default "full"
   */
  readonly check: "full" | "end" | "none";
  /** Largest file in bytes, downloaded or unpacked; `max_file_mb` times 1,000,000. @default 4_096_000_000 */
  readonly maxFileBytes: number;
  /** How many files are downloaded at a time, over all hosts; 1 to 16. @default 4 */
  readonly parallel: number;
  /**
   * Whether requests to private networks are permitted, also for hosts named by registries and redirects.
   * @default false
   */
  readonly allowsPrivate: boolean;
  /** The rate limits of the services. */
  readonly rates: OntologyRates;
  /** The folder through which processes share their limits; undefined for the work folder of `store`. */
  readonly sharedDir: string | undefined;
  /** The wanted ontologies, in the order of `sources.yaml`. */
  readonly sources: readonly Source[];
}

const DEFAULT_SOURCES_FILE = "sources.yaml";
const DEFAULTS = {
  store: "ontologies",
  lockfile: "ontologies.lock.json",
  check: "full",
  maxFileMb: 4096,
  parallel: 4,
} as const;
/** Relative paths in the file start at its folder; those of flags and variables start at the working directory. */
const PATHS = ["store", "lockfile", "ratelimit.shared_dir"];

/** The absolute path of `sources.yaml`. Throws a ConfigError for an empty flag. */
export function sourcesFile(flags: OntofetchFlags, env: Environment, cwd: string): string {
  return resolve(cwd, namedSourcesFile(flags, env));
}

/** The path of `sources.yaml` as the user writes it. An empty variable sets nothing. */
function namedSourcesFile({ sources }: OntofetchFlags, env: Environment): string {
  if (sources === "")
    throw new ConfigError([{ where: "--sources", path: "", message: "the text is empty; expected a file" }]);
  return sources ?? (env[SOURCES_VARIABLE] || DEFAULT_SOURCES_FILE);
}

/**
 * Loads `sources.yaml`, then applies environment variables, then flags: a later layer replaces single values.
 * @param cwd the working directory, where relative paths of flags and variables start.
 * @throws ConfigError that lists every problem of every layer.
 */
export async function loadOntofetchSettings(
  flags: OntofetchFlags,
  env: Environment,
  cwd: string,
): Promise<OntofetchSettings> {
  const file = sourcesFile(flags, env, cwd);
  const read = await readFileLayer(file, namedSourcesFile(flags, env));
  const environment = readOntofetchEnvironment(env);
  const layers = [
    {
      name: DEFAULT_SOURCES_FILE,
      assignments: withAbsolutePaths(read.assignments.map(nullAsEmptySource), dirname(file)),
    },
    { name: "environment", assignments: withAbsolutePaths(environment.assignments, cwd) },
    { name: "flags", assignments: withAbsolutePaths(readFlags(flags), cwd) },
  ];
  const problems: ConfigProblem[] = [
    ...read.problems.map(withHint),
    ...environment.problems,
    ...layers.flatMap(layer => problemsOf(sourcesSchema, layer.assignments, layer.name)),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
  const assignments = layers.flatMap(layer => layer.assignments);
  const settings = parseMerged(sourcesSchema, assemble(assignments), DEFAULT_SOURCES_FILE);
  const index = new SourceIndex(assignments);
  const reportProblem = (path: readonly string[], message: string) =>
    problems.push({ where: index.whereOf(path) ?? file, path: path.join("."), message });
  const sources = Object.keys(settings.sources).map(id => sourceOf(id, settings, reportProblem));
  const { shared_dir, ...ratelimit } = settings.ratelimit;
  checkUrls({ store: settings.store, lockfile: settings.lockfile, "ratelimit.shared_dir": shared_dir }, reportProblem);
  const rates = ratesOf(ratelimit, reportProblem);
  if (problems.length > 0 || rates === undefined) throw new ConfigError(problems);
  const folder = dirname(file);
  return {
    file,
    store: settings.store ?? resolve(folder, DEFAULTS.store),
    lockfile: settings.lockfile ?? resolve(folder, DEFAULTS.lockfile),
    check: settings.check ?? DEFAULTS.check,
    maxFileBytes: (settings.max_file_mb ?? DEFAULTS.maxFileMb) * 1_000_000,
    parallel: settings.parallel ?? DEFAULTS.parallel,
    allowsPrivate: settings.allow_private ?? false,
    rates,
    sharedDir: shared_dir,
    sources,
  };
}

function isUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
}

/** Of these settings only `store` may be a URL, and only an s3:// URL. */
function checkUrls(locations: Readonly<Record<string, string | undefined>>, reportProblem: ReportProblem): void {
  for (const [path, text] of Object.entries(locations)) {
    if (text === undefined || !isUrl(text)) continue;
    if (path !== "store") reportProblem(path.split("."), `expected a path on this machine, found ${quote(text)}`);
    else if (!isS3Url(text)) reportProblem([path], `expected a folder or s3://bucket/prefix, found ${quote(text)}`);
    else
      try {
        parseS3Url(text, path);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        for (const { message } of error.problems) reportProblem([path], message);
      }
  }
}

function ratesOf(ratelimit: OntologySettings, reportProblem: ReportProblem): OntologyRates | undefined {
  try {
    const rates = parseOntologySettings(ratelimit);
    for (const service of rates.perService.keys()) {
      if (SERVICES.includes(service)) continue;
      const hint = nameHint(service, SERVICES);
      reportProblem(["ratelimit", "per_service"], `unknown service ${JSON.stringify(service)}; ${hint}`);
    }
    return rates;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const { path, message } of error.problems) reportProblem(["ratelimit", ...path.split(".")], message);
    return undefined;
  }
}

function readFlags(flags: OntofetchFlags): readonly Assignment[] {
  const assignments: Assignment[] = [];
  const set = (where: string, path: readonly string[], value: unknown) => {
    if (value !== undefined) assignments.push({ path, value, where });
  };
  set("--store", ["store"], flags.store);
  set("--lockfile", ["lockfile"], flags.lockfile);
  set("--check", ["check"], flags.check);
  set("--rate", ["ratelimit", "default"], flags.rate);
  set("--rate-per-service", ["ratelimit", "per_service"], flags.ratePerService);
  set("--shared-dir", ["ratelimit", "shared_dir"], flags.sharedDir);
  return assignments;
}

function withAbsolutePaths(assignments: readonly Assignment[], folder: string): readonly Assignment[] {
  return assignments.map(assignment => {
    const { path, value } = assignment;
    const isPath = PATHS.includes(path.join(".")) && typeof value === "string" && value !== "" && !isUrl(value);
    return isPath ? { ...assignment, value: resolve(folder, value) } : assignment;
  });
}

/** In YAML, `hp:` without a value is null. Such a source has all defaults. */
function nullAsEmptySource(assignment: Assignment): Assignment {
  const { path, value } = assignment;
  const isEmpty = path.length === 2 && path[0] === "sources" && value === null;
  return isEmpty ? { ...assignment, value: {} } : assignment;
}

function withHint(problem: ConfigProblem): ConfigProblem {
  if (problem.message !== FILE_NOT_FOUND) return problem;
  return { ...problem, message: `${problem.message}; create one with "ontofetch init"` };
}
