import { isCredentialName } from "../core/text/credentials.ts";
import { mirrorProblem } from "./mirrors.ts";
import { nameHint } from "./name-hint.ts";
import { MEMBER_EXTRA, type Source } from "./resolver.ts";
import { RESOLVERS } from "./resolvers/all.ts";
import type { SourcesFile } from "./sources-schema.ts";

/** Receives a problem with the path of its key in `sources.yaml`. */
export type ReportProblem = (path: readonly string[], message: string) => void;

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
  // With an unknown resolver no key can be judged, so all are accepted.
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
  // Inherited formats that the resolver does not have are ignored.
  const own = sources[id]?.target_formats ?? [];
  const impossible = own.filter(format => resolver?.formats?.includes(format) === false);
  if (impossible.length > 0) {
    reportProblem(
      [...path, "target_formats"],
      `resolver ${name} has only ${resolver?.formats?.join(", ")}, not ${impossible.join(", ")}`,
    );
  }
  for (const key of ["url", "base"]) reportSecret(String(extras[key] ?? ""), [...path, "extras", key], reportProblem);
  for (const [index, mirror] of mirrors.entries()) {
    reportSecret(mirror, [...path, "mirrors", String(index)], reportProblem);
    const problem = mirrorProblem(mirror);
    if (problem !== undefined) reportProblem([...path, "mirrors", String(index)], problem);
  }
  const texts = Object.entries(extras).map(([key, value]) => [key, String(value)] as const);
  return {
    id,
    resolver: name,
    targetFormats: resolver?.formats ?? target_formats,
    extras: Object.fromEntries(texts),
    ...(version === undefined ? {} : { version }),
    ...(sha256 === undefined ? {} : { sha256 }),
    ...(mirrors.length === 0 ? {} : { mirrors }),
    ...(imports ? { imports } : {}),
  };
}

/** The URL is written to the lockfile and to manifests, so it must not contain a credential. */
function reportSecret(text: string, path: readonly string[], reportProblem: ReportProblem): void {
  const url = URL.parse(text);
  if (url === null) return;
  const parameter = [...url.searchParams.keys()].find(isCredentialName);
  // Some services take a token as user name: `https://ghp_…@host/`.
  const hasUser = url.username !== "" || url.password !== "";
  if (parameter === undefined && !hasUser) return;
  const found = hasUser ? "a user name or password" : `the query parameter ${JSON.stringify(parameter)}`;
  reportProblem(
    path,
    `contains ${found}, which may be a secret, and the URL is written to the lockfile and to manifests; configure the secret in identities.yaml (DOCSTOKG_IDENTITIES_YAML)`,
  );
}
