import { dirname, resolve } from "node:path";
import { nearest } from "../core/text/nearest.ts";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import type { Environment } from "../policy/environment.ts";
import { FILE_NOT_FOUND, readFileLayer } from "../policy/file-layer.ts";
import { type Assignment, assemble, sourceOfPath } from "../policy/layer.ts";
import { problemsOf } from "../policy/validation.ts";
import { readOntofetchEnvironment, SOURCES_VARIABLE } from "./ontofetch-environment.ts";
import type { Source } from "./resolver.ts";
import { RESOLVERS, SERVICES } from "./resolvers/all.ts";
import { type OntologyRates, type OntologySettings, parseOntologySettings } from "./service-rates.ts";
import { type SourcesFile, sourcesSchema } from "./sources-schema.ts";

/** The last layer, as flags say it. */
export interface OntofetchFlags {
  readonly sources?: string | undefined;
  readonly store?: string | undefined;
  readonly lockfile?: string | undefined;
  readonly check?: string | undefined;
  readonly rate?: string | undefined;
  readonly ratePerService?: string | undefined;
  readonly sharedDir?: string | undefined;
}

/** Everything that `ontofetch` goes by, complete. Paths are absolute. */
export interface OntofetchSettings {
  /** The `sources.yaml` it came from. */
  readonly file: string;
  readonly store: string;
  readonly lockfile: string;
  readonly check: "full" | "end" | "none";
  readonly maxFileBytes: number;
  /** How many files are fetched at a time, over all hosts. */
  readonly parallel: number;
  /** Whether hosts of private networks may be called, wherever their names come from. */
  readonly allowsPrivate: boolean;
  readonly rates: OntologyRates;
  /** Where limits are shared with other processes; undefined for nowhere. */
  readonly sharedDir: string | undefined;
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
/** In a file they are meant from the folder it lies in, elsewhere from where the command is typed. */
const PATHS = ["store", "lockfile", "ratelimit.shared_dir"];
/** A key in an address would end up in lockfiles and manifests. */
const SECRET_PARAMETER =
  /^(?:(?:.*[-_])?(?:api[-_]?key|key|secret|password|passwd|pwd|sig|signature|credentials?|jwt)|.*token|auth(?:orization)?|x-(?:amz|goog)-.*)$/i;

/** Which file it is. */
export function sourcesFile(flags: OntofetchFlags, env: Environment, cwd: string): string {
  return resolve(cwd, flags.sources ?? (env[SOURCES_VARIABLE] || DEFAULT_SOURCES_FILE));
}

/** File, environment, flags: the last word counts. Throws one ConfigError with everything that is wrong in any layer. */
export async function loadOntofetchSettings(
  flags: OntofetchFlags,
  env: Environment,
  cwd: string,
): Promise<OntofetchSettings> {
  const file = sourcesFile(flags, env, cwd);
  const read = await readFileLayer(file, flags.sources ?? env[SOURCES_VARIABLE] ?? DEFAULT_SOURCES_FILE);
  const environment = readOntofetchEnvironment(env);
  const layers = [
    { name: DEFAULT_SOURCES_FILE, said: withAbsolutePaths(read.assignments.map(emptySource), dirname(file)) },
    { name: "environment", said: withAbsolutePaths(environment.assignments, cwd) },
    { name: "flags", said: withAbsolutePaths(readFlags(flags), cwd) },
  ];
  const problems: ConfigProblem[] = [
    ...read.problems.map(withHint),
    ...environment.problems,
    ...layers.flatMap(({ name, said }) => problemsOf(sourcesSchema, said, name)),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
  const assignments = layers.flatMap(({ said }) => said);
  const settings = sourcesSchema.parse(assemble(assignments));
  const reportProblem = (path: readonly string[], message: string) =>
    problems.push({ where: sourceOfPath(assignments, path) ?? file, path: path.join("."), message });
  const sources = Object.keys(settings.sources).map(id => sourceOf(id, settings, reportProblem));
  const { shared_dir, ...ratelimit } = settings.ratelimit;
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

type ReportProblem = (path: readonly string[], message: string) => void;

function sourceOf(id: string, { sources, defaults }: SourcesFile, reportProblem: ReportProblem): Source {
  const {
    resolver: name = defaults.resolver ?? "obo",
    target_formats = defaults.target_formats ?? [],
    extras = {},
  } = sources[id] ?? {};
  const path = ["sources", id];
  const resolver = RESOLVERS.get(name);
  if (resolver === undefined) {
    const meant = nearest(name, RESOLVERS.keys());
    const hint = meant === undefined ? `there are ${[...RESOLVERS.keys()].join(", ")}` : `did you mean ${meant}?`;
    reportProblem([...path, "resolver"], `${JSON.stringify(name)} is no resolver; ${hint}`);
  }
  const known = Object.keys(resolver?.extras ?? extras);
  for (const key of Object.keys(extras)) {
    if (known.includes(key)) continue;
    const meant = nearest(key, known);
    const hint = meant === undefined ? `it has ${known.join(", ")}` : `did you mean ${meant}?`;
    reportProblem([...path, "extras", key], `the resolver ${name} has no such thing; ${hint}`);
  }
  for (const key of resolver?.requires ?? []) {
    if (!Object.hasOwn(extras, key))
      reportProblem([...path, "extras"], `the resolver ${name} needs ${key}: ${resolver?.extras[key]}`);
  }
  const url = URL.parse(String(extras["url"] ?? ""));
  const secret = [...(url?.searchParams.keys() ?? [])].find(parameter => SECRET_PARAMETER.test(parameter));
  // Tokens are written as user names, too: `https://ghp_…@host/`.
  if (secret !== undefined || (url?.username ?? "") !== "" || (url?.password ?? "") !== "") {
    reportProblem(
      [...path, "extras", "url"],
      "holds a secret, which would be written to lockfiles; say it by an identity instead",
    );
  }
  const texts = Object.entries(extras).map(([key, value]) => [key, String(value)] as const);
  return { id, resolver: name, targetFormats: target_formats, extras: Object.fromEntries(texts) };
}

function ratesOf(ratelimit: OntologySettings, reportProblem: ReportProblem): OntologyRates | undefined {
  try {
    const rates = parseOntologySettings(ratelimit);
    for (const service of rates.perService.keys()) {
      if (SERVICES.includes(service)) continue;
      const meant = nearest(service, SERVICES);
      const hint = meant === undefined ? `there are ${SERVICES.join(", ")}` : `did you mean ${meant}?`;
      reportProblem(["ratelimit", "per_service"], `there is no service ${JSON.stringify(service)}; ${hint}`);
    }
    return rates;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const { path, message } of error.problems) reportProblem(["ratelimit", ...path.split(".")], message);
    return undefined;
  }
}

function readFlags(flags: OntofetchFlags): readonly Assignment[] {
  const said: Assignment[] = [];
  const set = (where: string, path: readonly string[], value: unknown) => {
    if (value !== undefined) said.push({ path, value, where });
  };
  set("--store", ["store"], flags.store);
  set("--lockfile", ["lockfile"], flags.lockfile);
  set("--check", ["check"], flags.check);
  set("--rate", ["ratelimit", "default"], flags.rate);
  set("--rate-per-service", ["ratelimit", "per_service"], flags.ratePerService);
  set("--shared-dir", ["ratelimit", "shared_dir"], flags.sharedDir);
  return said;
}

function withAbsolutePaths(assignments: readonly Assignment[], folder: string): readonly Assignment[] {
  return assignments.map(said => {
    const isPath = PATHS.includes(said.path.join(".")) && typeof said.value === "string" && said.value !== "";
    return isPath ? { ...said, value: resolve(folder, said.value as string) } : said;
  });
}

/** `hp:` with nothing behind it is a source that says nothing but its name. */
function emptySource(said: Assignment): Assignment {
  const isEmpty = said.path.length === 2 && said.path[0] === "sources" && said.value === null;
  return isEmpty ? { ...said, value: {} } : said;
}

function withHint(problem: ConfigProblem): ConfigProblem {
  if (problem.message !== FILE_NOT_FOUND) return problem;
  return { ...problem, message: `${problem.message}; "ontofetch init" makes one` };
}
