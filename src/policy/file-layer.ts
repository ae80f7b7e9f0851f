import { readFile } from "node:fs/promises";
import { withoutCredentials } from "../core/text/passwords.ts";
import { MAX_CHARACTERS, objectLayer, type PolicyLayer } from "./layer.ts";
import { readPlainYaml } from "./plain-yaml.ts";

/** Exported because callers compare problems with it. */
export const FILE_NOT_FOUND = "file not found";

/** Reads the user's layer: the file or object that is given, or else the file that the environment variable names. */
export async function readUserLayer(
  key: string,
  variable: string,
  given: string | object | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Promise<PolicyLayer> {
  const source = given === undefined ? env[variable] || undefined : given;
  if (typeof source === "string") return readFileLayer(source, source, given === undefined ? variable : undefined);
  return objectLayer(source, `policy.${key}`);
}

/** Reads a policy file. A file that cannot be read gives an empty layer with one problem. */
export async function readFileLayer(
  file: string | URL,
  name: string = String(file),
  variable?: string,
): Promise<PolicyLayer> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    const message = code === "ENOENT" ? FILE_NOT_FOUND : `cannot read the file (${code})`;
    return {
      assignments: [],
      problems: [
        { where: variable === undefined ? name : `${variable}=${withoutCredentials(name)}`, path: "", message },
      ],
    };
  }
  if (text.length <= MAX_CHARACTERS) {
    const assignments = readPlainYaml(text, name);
    if (assignments !== undefined) return { assignments, problems: [] };
  }
  // Few files need the complete parser, which takes 30 ms to load.
  const { readYamlLayer } = await import("./yaml-layer.ts");
  return readYamlLayer(text, name);
}
