import { formatOfName } from "./format.ts";

/** How many names a message lists. */
const NAMES_MAX = 5;

/** Whether an entry of an archive may be the ontology: the named one, or any file with an ontology extension. */
export function isOntologyMember(name: string, member: string | undefined): boolean {
  if (name.endsWith("/")) return false;
  if (member !== undefined) return name === member || name.endsWith(`/${member}`);
  const parts = name.split("/");
  // Files that macOS adds, hidden files, and the catalogue that maps imports to files.
  const isHidden = parts.some(part => part.startsWith(".") || part === "__MACOSX");
  return !isHidden && parts.at(-1) !== "catalog-v001.xml" && formatOfName(name) !== undefined;
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
