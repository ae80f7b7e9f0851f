/** The rules of the code, each a pure function from one source file to its problems. */

import { sentencesOf } from "./sentences.ts";

export interface SourceFile {
  /** Relative to the root of the project, with forward slashes: `src/core/limits/rate.ts`. */
  readonly path: string;
  readonly text: string;
}

export type Rule = (file: SourceFile) => readonly string[];

/**
 * The modules that each module may import. Files directly in `src/` are entry points, which no module imports, except
 * those in `COMMON`.
 */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  time: [],
  // Imported through src/errors.ts.
  errors: ["core"],
  policy: ["core"],
  stores: ["core", "time", "policy"],
  limiter: ["core", "time", "policy"],
  breaker: ["core", "time", "policy"],
  sharing: ["core", "time", "policy", "stores", "limiter", "breaker"],
  gate: ["core", "time", "policy", "stores", "limiter", "breaker", "sharing"],
  http: ["core", "time", "policy", "stores", "limiter", "breaker", "sharing", "gate"],
  files: ["core", "time", "stores", "http"],
  // It only receives events: no module below it imports it.
  telemetry: ["core", "time", "policy", "stores", "limiter", "breaker", "sharing", "gate", "http"],
  testing: ["core", "time", "policy", "stores", "limiter", "breaker", "gate", "http", "telemetry"],
  ontology: ["core", "time", "policy", "stores", "limiter", "breaker", "sharing", "gate", "http", "files", "telemetry"],
  harvest: ["core", "time", "policy", "stores", "limiter", "breaker", "gate", "http", "files", "telemetry"],
  dashboard: ["core", "time", "policy", "stores", "limiter", "breaker", "http", "telemetry", "harvest"],
  cli: [
    ...["core", "time", "policy", "stores", "limiter", "breaker", "gate", "http", "files", "telemetry"],
    ...["testing", "ontology", "harvest", "dashboard"],
  ],
};
/** Files directly in `src/` that every module but the pure core may import. */
const COMMON = ["src/errors.ts", "src/listeners.ts"];

export const arrows: Rule = file => {
  const from = moduleOf(file.path);
  if (from === undefined || isTest(file.path)) return [];
  const allowed = ARROWS[from];
  if (allowed === undefined) return [`unknown module ${from}`];
  return imports(file)
    .filter(target => target.startsWith("src/"))
    .map(target => ({ target, to: moduleOf(target) }))
    .filter(({ target, to }) =>
      to === undefined ? from === "core" || !COMMON.includes(target) : to !== from && !allowed.includes(to),
    )
    .map(({ target }) => `${from} may not import ${target}`);
};

export const pureCore: Rule = file => {
  if (moduleOf(file.path) !== "core" || isTest(file.path)) return [];
  const impure =
    /\bnode:|\b(?:async|await|Promise|Date|process|console|performance|fetch|setTimeout|setInterval|setImmediate|queueMicrotask|Math\.random)\b/;
  return linesMatching(file, impure, "core is pure: numbers in, values out");
};

export const kebabCase: Rule = file =>
  file.path
    .split("/")
    .filter(part => !/^\.?[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+)*$/.test(part))
    .map(part => `${part} is not kebab-case`);

export const testsAssert: Rule = file =>
  isTest(file.path) && !/\bassert(?:\.\w+)?\(|\bt\.assert\b/.test(file.text) ? ["this test file asserts nothing"] : [];

export const noClockOutsideTime: Rule = file => {
  if (!isSource(file.path) || moduleOf(file.path) === "time") return [];
  const clock = /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bprocess\.hrtime|\bsetTimeout\(|\bsetInterval\(/;
  return linesMatching(file, clock, "only time/ reads a clock or sets a timer");
};

export const oneLimiterOneBreaker: Rule = file => {
  // These files contain the forbidden names.
  if (file.path.startsWith("test/code-rules.")) return [];
  const banned = linesMatching(file, /\b(?:Shared)?TokenBucket\b|\bapplyRetryAfter\b/, "old name of a limiter");
  const module = moduleOf(file.path);
  if (!isSource(file.path) || ["core", "limiter", "breaker", "gate"].includes(module ?? "")) return banned;
  const second = /\b(?:class|function)\s+\w*(?:Limiter|Throttle|Throttler|Bucket|CircuitBreaker|Breaker)\b/;
  return [
    ...banned,
    ...linesMatching(file, second, "limiters and breakers live in core/, limiter/, breaker/ and gate/"),
  ];
};

export const noSleepingToThrottle: Rule = file => {
  const module = moduleOf(file.path);
  if (!isSource(file.path) || module === "time" || module === "testing") return [];
  return linesMatching(file, /\bsleep\(/, "do not sleep to throttle: wait for a grant of the gate");
};

export const allRules: Readonly<Record<string, Rule>> = {
  "imports between modules point inward": arrows,
  "core is pure": pureCore,
  "names are kebab-case": kebabCase,
  "every test file asserts": testsAssert,
  "no clock is read outside time/": noClockOutsideTime,
  "there is one limiter and one breaker": oneLimiterOneBreaker,
  "no code sleeps to throttle": noSleepingToThrottle,
};

/** The type names that more than one source file declares: each noun has one declaration. Tests may have their own types. */
export function repeatedTypes(files: readonly SourceFile[]): readonly string[] {
  const declaredIn = new Map<string, string[]>();
  for (const { path, text } of files) {
    if (!isSource(path)) continue;
    const names = text.matchAll(
      /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)\b(?! from)/gm,
    );
    for (const name of new Set([...names].map(([, name = ""]) => name)))
      declaredIn.set(name, [...(declaredIn.get(name) ?? []), path]);
  }
  return [...declaredIn].filter(([, paths]) => paths.length > 1).map(([name, paths]) => `${name}: ${paths.join(", ")}`);
}

/** So that a version can be read in five minutes. */
const MAX_VERSION_LINES = 300;
const MAX_ENTRY_SENTENCES = 3;

/** Problems of a changelog: Unreleased comes first, sections are known, versions are dated, versions and entries are short. */
export function changelogProblems(text: string): readonly string[] {
  const problems: string[] = [];
  const versions = [...text.matchAll(/^## (.*)$/gm)].map(([, title = ""]) => title);
  if (versions[0] !== "Unreleased") problems.push('the first section must be "## Unreleased"');
  for (const title of versions.slice(1)) {
    if (!/^\d+\.\d+\.\d+ - \d{4}-\d{2}-\d{2}$/.test(title))
      problems.push(`"## ${title}" is not "## x.y.z - yyyy-mm-dd"`);
  }
  const sections = ["Before you update", "Renamed and removed", "Added", "Changed", "Deprecated", "Fixed"];
  for (const [, title = ""] of text.matchAll(/^### (.*)$/gm)) {
    if (!sections.includes(title)) problems.push(`unknown section "### ${title}"; expected ${sections.join(", ")}`);
  }
  for (const version of text.split(/^(?=## )/m)) {
    const lines = version.trimEnd().split("\n");
    if (lines.length > MAX_VERSION_LINES)
      problems.push(`${lines[0]} has ${lines.length} lines, at most ${MAX_VERSION_LINES}: merge entries of one cause`);
  }
  for (const [entry] of text.matchAll(/^- .*$/gm)) {
    const count = sentencesOf(entry).length;
    if (count > MAX_ENTRY_SENTENCES)
      problems.push(`an entry has ${count} sentences, at most ${MAX_ENTRY_SENTENCES}: ${entry}`);
  }
  return problems;
}

function isTest(path: string): boolean {
  return path.endsWith(".test.ts");
}

function isSource(path: string): boolean {
  return path.startsWith("src/") && !isTest(path);
}

function moduleOf(path: string): string | undefined {
  return /^src\/([^/]+)\//.exec(path)?.[1];
}

function imports(file: SourceFile): readonly string[] {
  return [...file.text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, target = ""]) =>
    new URL(target, `file:///${file.path}`).pathname.slice(1),
  );
}

/** Comments are skipped, because they may name what code must not use. */
function linesMatching({ text }: SourceFile, pattern: RegExp, why: string): readonly string[] {
  return text
    .split("\n")
    .map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => !/^\s*(?:\/?\*|\/\/)/.test(line) && pattern.test(line))
    .map(({ line, number }) => `line ${number}: ${why}: ${line.trim()}`);
}
