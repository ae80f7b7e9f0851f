/**
 * Builds the site of the documents: `npm run docs` writes `docs-site/`, from docs/, the documents of the root and the doc
 * comments of the public API. It works from a file path and below any prefix, because all addresses are relative.
 * A broken link, a missing anchor, a resource of another server or a search without results fails the build.
 */
import { globSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  Application,
  type Context,
  Converter,
  type DeclarationReflection,
  type DocumentReflection,
  PageEvent,
  type Reflection,
  ReflectionKind,
  StructureRouter,
  TSConfigReader,
  type TypeDocOptions,
} from "typedoc";
import { linkProblems } from "./links.ts";
import { searchProblems } from "./search.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const out = join(root, "docs-site");

/** The groups of the navigation, in this order, and the documents of each. */
const GROUPS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ["Start", /^docs\/(?:tutorial|recipes|troubleshooting|coming-from|concepts)\.md$/],
  ["Guides", /^docs\/guides\//],
  ["Reference", /^docs\/reference\//],
  ["Project", /./],
];

const options: Partial<TypeDocOptions> = {
  name: "docstokg",
  entryPoints: entryPoints(),
  tsconfig: join(root, "site/tsconfig.json"),
  basePath: root,
  out,
  readme: join(root, "README.md"),
  projectDocuments: documents(),
  customCss: join(root, "site/site.css"),
  // TypeScript 7 checks the types of the project; TypeDoc has an older version.
  skipErrorChecking: true,
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  disableSources: true,
  hideGenerator: true,
  searchInComments: true,
  searchInDocuments: true,
  router: "site",
  navigation: { includeCategories: true, includeGroups: true },
  groupOrder: [...GROUPS.map(([name]) => name), "Modules", "*"],
  categorizeByGroup: false,
  sort: ["source-order"],
  highlightLanguages: ["bash", "console", "javascript", "json", "python", "sql", "typescript", "yaml"],
  treatWarningsAsErrors: true,
  validation: { invalidLink: true, invalidPath: true, notExported: false, notDocumented: false, rewrittenLink: true },
};

/** A document has the address of its file, and the API is below `api/`. */
class SiteRouter extends StructureRouter {
  protected override getIdealBaseName(reflection: Reflection): string {
    if (reflection.isDocument()) return pathOf(reflection).replace(/\.md$/, "");
    return `api/${super.getIdealBaseName(reflection)}`;
  }
}

rmSync(out, { recursive: true, force: true });
const app = await Application.bootstrap(options, [new TSConfigReader()]);
app.renderer.defineRouter("site", SiteRouter);
app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_: unknown, document: DocumentReflection) => nameDocument(document));
app.converter.on(Converter.EVENT_CREATE_DECLARATION, (_: Context, declaration: DeclarationReflection) => {
  if (declaration.kind === ReflectionKind.Module) declaration.name = declaration.name.replace(/^src/, "docstokg");
});
// A link to a folder, as TypeDoc writes it for the README, shows a list of files when the site is opened from a disk.
app.renderer.on(PageEvent.END, (page: PageEvent) => {
  page.contents = page.contents?.replace(/href="((?:\.\.?\/)+)(#[^"]*)?"/g, 'href="$1index.html$2"');
});
const project = await app.convert();
if (project === undefined) process.exit(1);
app.validate(project);
await app.generateDocs(project, out);
const problems = app.logger.hasErrors() || app.logger.hasWarnings() ? ["TypeDoc has reported problems"] : [];
problems.push(...linkProblems(out), ...(await searchProblems(out, ["429", "maxWaitMs", "BreakerOpenError", "Redis"])));
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
console.log(`${globSync("**/*.html", { cwd: out }).length} pages in ${relative(process.cwd(), out) || "."}/index.html`);

/** A document has the title of its first heading, and the group of its folder. */
function nameDocument(document: DocumentReflection): void {
  const path = pathOf(document);
  const [, title] = /^# (.*)$/m.exec(readFileSync(join(root, path), "utf8")) ?? [];
  if (title === undefined) throw new Error(`${path} has no heading`);
  document.name = title;
  const group = GROUPS.find(([, pattern]) => pattern.test(path))?.[0] ?? "Project";
  document.frontmatter["group"] = group;
  // A page that explains a word comes before the many members that mention it.
  document.relevanceBoost = group === "Project" ? 1 : 8;
}

function pathOf(document: DocumentReflection): string {
  const file = document.project.files.getReflectionPath(document);
  if (file === undefined) throw new Error(`the document ${document.name} has no file`);
  return relative(root, file);
}

function documents(): string[] {
  const start = ["tutorial", "recipes", "troubleshooting", "coming-from", "concepts"].map(name => `docs/${name}.md`);
  const project = [
    "docs/{guarantees,benchmarks,decisions}.md",
    "{ARCHITECTURE,CONTRIBUTING,CHANGELOG,SECURITY,examples/README}.md",
  ];
  return [...start, "docs/{guides,reference}/*.md", ...project]
    .flatMap(pattern => globSync(pattern, { cwd: root }).sort())
    .map(path => join(root, path));
}

/** The sources behind the `exports` of package.json. */
function entryPoints(): string[] {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    exports: Record<string, string | { default: string }>;
  };
  return Object.values(exports)
    .map(entry => (typeof entry === "string" ? entry : entry.default))
    .filter(path => path.startsWith("./dist/"))
    .map(path => join(root, path.replace("./dist/", "src/").replace(/\.js$/, ".ts")));
}
