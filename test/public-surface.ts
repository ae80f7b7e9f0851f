/**
 * The public surface of the package, read from the declarations that the compiler emits: what each entry exports, without
 * comments, and which exports and members have no doc comment.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

interface Declaration {
  readonly name: string;
  readonly doc: string;
  /** Without comments. */
  readonly text: string;
  readonly members: readonly Member[];
}

interface Member {
  /** `tls.ca` for a member of a member. */
  readonly name: string;
  /** Number of the member of a union that it belongs to; 0 in an interface or a class. */
  readonly unionMember: number;
  readonly doc: string;
}

interface DeclarationFile {
  readonly declared: ReadonlyMap<string, readonly Declaration[]>;
  /** Exported name -> its file and its name there. */
  readonly reexported: ReadonlyMap<string, { readonly file: string; readonly name: string }>;
  readonly starred: readonly string[];
  /** Local name -> the file it is imported from. */
  readonly imported: ReadonlyMap<string, string>;
}

export interface PublicSurface {
  /** For each entry, its exports with their declarations. */
  readonly text: string;
  /** `entry: Name` or `entry: Name.member`. */
  readonly undocumented: readonly string[];
  /** Our own types that a public declaration names and no entry exports. */
  readonly unexported: readonly string[];
}

/** Members whose meaning is the same everywhere. */
const COMMON_MEMBERS = new Set(["#private", "[Symbol.dispose]", "[Symbol.asyncDispose]"]);
/** Set by every error class; the base class documents them. */
const ERROR_MEMBERS = new Set(["name", "code", "retryable"]);
/** They tell the members of a union apart. The comment before each member of the union documents their value. */
const DISCRIMINANTS = new Set(["event_type", "kind", "effect"]);

export function publicSurface(root: string): PublicSurface {
  const files = new Map<string, DeclarationFile>();
  const fileOf = (path: string) => {
    const parsed = files.get(path) ?? parseFile(path, readFileSync(path, "utf8"));
    files.set(path, parsed);
    return parsed;
  };
  const sections: string[] = [];
  const undocumented = new Set<string>();
  const public_ = new Map<string, readonly Declaration[]>();
  const named: { readonly from: string; readonly name: string; readonly file: DeclarationFile }[] = [];
  for (const [subpath, path] of entriesOf(root)) {
    const exports = exportsOf(path, fileOf);
    const texts = [...exports]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { declarations, file }]) => {
        public_.set(name, declarations);
        for (const { text } of declarations)
          for (const word of identifiersIn(text)) named.push({ from: `${subpath}: ${name}`, name: word, file });
        for (const problem of undocumentedIn(name, declarations)) undocumented.add(`${subpath}: ${problem}`);
        return declarations.map(({ text }) => text).join("\n");
      });
    sections.push(`## ${subpath}\n\n${texts.join("\n")}\n`);
  }
  const unexported = new Set<string>();
  for (const { from, name, file } of named) {
    const target = file.imported.get(name);
    const isOurs = (target !== undefined && !target.includes("node_modules")) || file.declared.has(name);
    if (isOurs && !public_.has(name)) unexported.add(`${from} names ${name}`);
  }
  return { text: sections.join("\n"), undocumented: [...undocumented].sort(), unexported: [...unexported].sort() };
}

function entriesOf(root: string): readonly (readonly [subpath: string, path: string])[] {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    exports: Record<string, string | { types: string }>;
  };
  return Object.entries(exports).flatMap(([subpath, target]) =>
    typeof target === "string" ? [] : [[subpath.replace(/^\./, "docstokg"), resolve(root, target.types)] as const],
  );
}

type Exports = Map<string, { readonly declarations: readonly Declaration[]; readonly file: DeclarationFile }>;

function exportsOf(path: string, fileOf: (path: string) => DeclarationFile): Exports {
  const file = fileOf(path);
  const found: Exports = new Map();
  for (const [name, declarations] of file.declared) {
    if (declarations.some(({ text }) => text.startsWith("export "))) found.set(name, { declarations, file });
  }
  for (const [name, target] of file.reexported) {
    const there = exportsOf(target.file, fileOf).get(target.name);
    if (there === undefined)
      throw new Error(`${relative(".", path)} exports ${name}, which ${target.file} does not have`);
    found.set(name, there);
  }
  for (const target of file.starred) for (const [name, there] of exportsOf(target, fileOf)) found.set(name, there);
  return found;
}

function parseFile(path: string, text: string): DeclarationFile {
  const declared = new Map<string, Declaration[]>();
  const reexported = new Map<string, { file: string; name: string }>();
  const starred: string[] = [];
  const imported = new Map<string, string>();
  for (const { doc, statement } of statementsOf(text)) {
    const from = /\bfrom "(\.[^"]+)";?$/.exec(statement)?.[1];
    const target = from === undefined ? undefined : declarationPath(path, from);
    if (statement.startsWith("import ")) {
      for (const { local } of namesOf(statement)) if (target !== undefined) imported.set(local, target);
    } else if (statement.startsWith("export *")) {
      if (target !== undefined) starred.push(target);
    } else if (/^export (?:type )?\{/.test(statement)) {
      for (const { name, local } of namesOf(statement)) {
        if (target !== undefined) reexported.set(local, { file: target, name });
      }
    } else {
      const name =
        /^(?:export )?(?:declare )?(?:abstract )?(?:interface|class|type|const|let|function|enum) (\w+)/.exec(
          statement,
        )?.[1];
      if (name === undefined) continue;
      const declaration = { name, doc, text: withoutComments(statement), members: membersOf(statement) };
      declared.set(name, [...(declared.get(name) ?? []), declaration]);
    }
  }
  return { declared, reexported, starred, imported };
}

/** A declaration file imports `./x.ts` and means `./x.d.ts`. */
function declarationPath(path: string, from: string): string {
  const target = resolve(dirname(path), from.replace(/\.(?:ts|js)$/, ".d.ts"));
  if (!existsSync(target)) throw new Error(`${path} imports ${from}, which is not there`);
  return target;
}

/** `{ a, type b as c }`: its names there and here. */
function namesOf(statement: string): readonly { readonly name: string; readonly local: string }[] {
  const inside = /\{([^}]*)\}/.exec(statement)?.[1] ?? "";
  return inside
    .split(",")
    .map(part => part.trim().replace(/^type /, ""))
    .filter(part => part !== "")
    .map(part => {
      const [name = "", local = name] = part.split(" as ");
      return { name, local };
    });
}

/** Statements at the top level, each with the doc comment before it. */
function statementsOf(text: string): readonly { readonly doc: string; readonly statement: string }[] {
  const statements: { doc: string; statement: string }[] = [];
  let doc = "";
  let current: string[] = [];
  let isInComment = false;
  for (const line of text.split("\n")) {
    if (current.length === 0) {
      if (line.startsWith("/**")) doc = "";
      if (line.startsWith("/**") || isInComment) {
        doc += `${line}\n`;
        isInComment = !line.includes("*/");
        continue;
      }
      if (line.trim() === "" || line.startsWith("//")) continue;
    }
    current.push(line);
    const statement = current.join("\n");
    if (!isComplete(statement)) continue;
    statements.push({ doc, statement });
    current = [];
    doc = "";
  }
  return statements;
}

/** The compiler ends an interface or a class with a closing brace, every other statement with `;`. */
function isComplete(statement: string): boolean {
  const bare = withoutComments(statement);
  const count = (pattern: RegExp) => bare.match(pattern)?.length ?? 0;
  // The members of a union are in braces too.
  const end = /^(?:export )?type /.test(statement) ? /;$/ : /[;}]$/;
  return count(/[{([]/g) === count(/[})\]]/g) && end.test(bare.trimEnd());
}

/**
 * Of an interface, a class or a type, at every depth: the compiler indents each level by four spaces. The details that a
 * constructor takes are those of the class.
 */
function membersOf(statement: string): readonly Member[] {
  if (!/^(?:export )?(?:declare )?(?:abstract )?(?:interface|class|type) /.test(statement)) return [];
  const members: Member[] = [];
  let doc = "";
  let isInComment = false;
  let path: readonly string[] = [];
  let unionMember = /^(?:export )?type .*\{(?:\n|$)/.test(statement) ? 1 : 0;
  for (const line of statement.split("\n").slice(1)) {
    if (/^ {4,}\/\*\*/.test(line)) doc = "";
    if (/^ {4,}\/\*\*/.test(line) || isInComment) {
      doc += line;
      isInComment = !line.includes("*/");
      continue;
    }
    if (/^(?! {4}).*\{$/.test(line)) unionMember += 1;
    const [, indent = "", name] =
      /^((?: {4})+)(?:readonly |static |get |set |abstract |override |declare )*([\w#$]+|\[[^\]]+\])/.exec(line) ?? [];
    if (name === undefined) continue;
    path = [...path.slice(0, indent.length / 4 - 1), name];
    if (!path.slice(0, -1).includes("constructor")) members.push({ name: path.join("."), unionMember, doc });
    doc = "";
  }
  return members;
}

function undocumentedIn(name: string, declarations: readonly Declaration[]): readonly string[] {
  const problems: string[] = [];
  if (declarations.every(({ doc }) => doc === "")) problems.push(name);
  const isError = /Error$|Exceeded$/.test(name);
  const members = declarations.flatMap(declaration => declaration.members);
  // One comment is enough for all overloads of a method, but not for the members of a union.
  const keyOf = (member: Member) => `${member.unionMember} ${member.name}`;
  const documented = new Set(members.filter(({ doc }) => doc !== "").map(keyOf));
  for (const member of members) {
    const isKnown =
      COMMON_MEMBERS.has(member.name) || (isError && ERROR_MEMBERS.has(member.name)) || member.name === "constructor";
    const isDiscriminant = member.unionMember > 0 && DISCRIMINANTS.has(member.name);
    if (!documented.has(keyOf(member)) && !isKnown && !isDiscriminant) problems.push(`${name}.${member.name}`);
  }
  return [...new Set(problems)];
}

function identifiersIn(text: string): readonly string[] {
  return [...new Set(text.replace(/"[^"]*"/g, '""').match(/\b[A-Z]\w+/g) ?? [])];
}

function withoutComments(text: string): string {
  return text.replace(/\s*\/\*[\s\S]*?\*\//g, "");
}
