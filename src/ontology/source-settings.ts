import { nameHint } from "./name-hint.ts";
import { MEMBER_EXTRA, type Source } from "./resolver.ts";
import { RESOLVERS } from "./resolvers/all.ts";
import type { SourcesFile } from "./sources-schema.ts";

/** Receives a problem with the path of its key in `sources.yaml`. */
export type ReportProblem = (path: readonly string[], message: string) => void;

/** Query parameters that usually hold a secret. The URL is written to the lockfile and to manifests. */
const SECRET_PARAMETER =
  /^(?:(?:.*[-_])?(?:api[-_]?key|key|secret|password|passwd|pwd|sig|signature|credentials?|jwt)|.*token|auth(?:orization)?|x-(?:amz|goog)-.*)$/i;

/**
 * One entry of `sources` with its inherited values. Problems are reported, not thrown, so that all are found at once.
 */
export function sourceOf(id: string, { sources, defaults }: SourcesFile, reportProblem: ReportProblem): Source {
  const {
    resolver: name = defaults.resolver ?? "obo",
    target_formats = defaults.target_formats ?? [],
    extras = {},
    version,
    sha256,
    mirrors = defaults.mirrors ?? [],
    imports = defaults.imports ?? false,
  } = sources[id] ?? {};
  const path = ["sources", id];
  const resolver = RESOLVERS.get(name);
  if (resolver === undefined) {
    const hint = nameHint(name, [...RESOLVERS.keys()]);
    reportProblem([...path, "resolver"], `unknown resolver ${JSON.stringify(name)}; ${hint}`);
  }
  const known = Object.keys(resolver === undefined ? extras : { ...resolver.extras, ...MEMBER_EXTRA });
  for (const key of Object.keys(extras)) {
    if (known.includes(key)) continue;
    const hint = nameHint(key, known);
    reportProblem([...path, "extras", key], `unknown key in extras of resolver ${name}; ${hint}`);
  }
  for (const key of resolver?.requires ?? []) {
    if (!Object.hasOwn(extras, key))
      reportProblem([...path, "extras"], `resolver ${name} requires ${key}: ${resolver?.extras[key]}`);
  }
  for (const key of ["url", "base"]) reportSecret(String(extras[key] ?? ""), [...path, "extras", key], reportProblem);
  for (const [index, mirror] of mirrors.entries()) {
    reportSecret(mirror, [...path, "mirrors", String(index)], reportProblem);
    if (/^http:/i.test(mirror)) reportProblem([...path, "mirrors", String(index)], "use https: or a folder");
  }
  const texts = Object.entries(extras).map(([key, value]) => [key, String(value)] as const);
  return {
    id,
    resolver: name,
    targetFormats: target_formats,
    extras: Object.fromEntries(texts),
    ...(version === undefined ? {} : { version }),
    ...(sha256 === undefined ? {} : { sha256 }),
    ...(mirrors.length === 0 ? {} : { mirrors }),
    ...(imports ? { imports } : {}),
  };
}

function reportSecret(text: string, path: readonly string[], reportProblem: ReportProblem): void {
  const url = URL.parse(text);
  const secret = [...(url?.searchParams.keys() ?? [])].find(parameter => SECRET_PARAMETER.test(parameter));
  // Some services take a token as user name: `https://ghp_…@host/`.
  if (secret === undefined && (url?.username ?? "") === "" && (url?.password ?? "") === "") return;
  reportProblem(
    path,
    "contains a secret, which would be written to the lockfile; configure it in identities.yaml instead",
  );
}
