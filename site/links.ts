import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** Links to missing files or anchors in a folder of HTML pages, and resources that another server would have to give. */
export function linkProblems(folder: string): readonly string[] {
  const pages = globSync("**/*.html", { cwd: folder }).map(path => join(folder, path));
  const anchors = new Map(pages.map(page => [page, anchorsOf(readFileSync(page, "utf8"))]));
  return pages.flatMap(page => {
    const where = relative(folder, page);
    const html = readFileSync(page, "utf8");
    return [...links(html)].flatMap(({ tag, target }) => {
      if (/^[a-z][a-z0-9+.-]*:|^\/\//i.test(target)) {
        const isResource = tag !== "a" && !target.startsWith("data:");
        return isResource ? [`${where}: <${tag}> loads ${target} from another server`] : [];
      }
      const [path = "", anchor = ""] = target.split("#");
      const file = path === "" ? page : resolve(dirname(page), decodeURIComponent(path.split("?")[0] ?? ""));
      if (!existsSync(file) || statSync(file).isDirectory()) return [`${where}: ${target} does not exist`];
      if (target.startsWith("/")) return [`${where}: ${target} would not work below a prefix`];
      const known = anchors.get(file);
      const isMissing = anchor !== "" && known !== undefined && !known.has(decodeURIComponent(anchor));
      return isMissing ? [`${where}: ${target}: no such anchor`] : [];
    });
  });
}

function anchorsOf(html: string): ReadonlySet<string> {
  return new Set([...html.matchAll(/\sid="([^"]*)"/g)].map(([, id = ""]) => unescaped(id)));
}

function* links(html: string) {
  for (const [, tag = "", attributes = ""] of html.matchAll(/<(a|link|script|img|source|iframe)\s([^>]*)>/g))
    for (const [, target = ""] of attributes.matchAll(/(?:^|\s)(?:href|src)="([^"]*)"/g))
      yield { tag, target: unescaped(target) };
}

function unescaped(text: string): string {
  return text
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}
