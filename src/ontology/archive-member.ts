import { formatOfName } from "./format.ts";

/** How many names a message lists. */
const NAMES_MAX = 5;

/**
 * The entries that may be the ontology: those with an ontology extension. With `member`: the entry at this path, else the
 * entries whose path ends with it. An archive is used if it has exactly one of them.
 */
export function ontologyMembers<Entry>(
  entries: readonly Entry[],
  nameOf: (entry: Entry) => string,
  member: string | undefined,
): readonly Entry[] {
  if (member === undefined) return entries.filter(entry => isOntology(nameOf(entry)));
  const wanted = pathOf(member);
  // A directory has a slash at its end, so it is never the wanted file.
  const exact = entries.filter(entry => pathOf(nameOf(entry)) === wanted);
  return exact.length > 0 ? exact : entries.filter(entry => nameOf(entry).endsWith(`/${wanted}`));
}

/** Whether a name has an ontology extension. */
function isOntology(name: string): boolean {
  if (name.endsWith("/")) return false;
  const parts = pathOf(name).split("/");
  // Files that macOS adds, hidden files, and the catalogue that maps imports to files.
  const isHidden = parts.some(part => part.startsWith(".") || part === "__MACOSX");
  return !isHidden && parts.at(-1) !== "catalog-v001.xml" && formatOfName(name) !== undefined;
}

/** The path without parts that are ".": `tar czf x.tgz .` writes `./x.obo`. */
function pathOf(name: string): string {
  return name
    .split("/")
    .filter(part => part !== ".")
    .join("/");
}

/** Why an archive with these candidates cannot be used. */
export function memberProblem(packing: string, names: readonly string[], member: string | undefined): string {
  if (names.length === 0) {
    if (member !== undefined) return `the ${packing} file contains no file named ${member} (member in extras)`;
    return `the ${packing} file contains no file with a known ontology extension`;
  }
  const listed = names.slice(0, NAMES_MAX).map(printableName).join(", ");
  const more = names.length > NAMES_MAX ? `, and ${names.length - NAMES_MAX} more` : "";
  return `the ${packing} file contains ${names.length} ontologies (${listed}${more}); name one of them as member in extras`;
}

/** Names come from the network and go to a terminal. */
export function printableName(name: string): string {
  return name.replace(/\p{Cc}/gu, "?").slice(0, 100);
}
