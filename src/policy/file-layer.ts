import { readFile } from "node:fs/promises";
import { withoutCredentials } from "../core/text/passwords.ts";
import { objectLayer, type PolicyLayer } from "./layer.ts";
import { readYamlLayer } from "./yaml-layer.ts";

/** The message of a problem: the file does not exist. */
export const FILE_NOT_FOUND = "file not found";
const SHIPPED = "(shipped)";
const shippedLayers = new Map<string, Promise<PolicyLayer>>();

/** Reads one of the files that come with the package, once: they do not change while a program runs. */
export function readShippedLayer(key: string): Promise<PolicyLayer> {
  const file = new URL(`../../configs/networking/${key}.yaml`, import.meta.url);
  const known = shippedLayers.get(key) ?? readFileLayer(file, `${key}.yaml ${SHIPPED}`);
  shippedLayers.set(key, known);
  return known;
}

/** Whether the source of a value is a file that comes with the package. */
export function isShippedSource(where: string): boolean {
  return where.includes(`.yaml ${SHIPPED}:`);
}

/** Reads the user's layer: the file or object that is given, or else the file that the environment variable names. */
export async function readUserLayer(
  key: string,
  variable: string,
  given: string | object | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Promise<PolicyLayer> {
  const file = given === undefined ? env[variable] || undefined : given;
  if (typeof file === "string") return readFileLayer(file, file, given === undefined ? variable : undefined);
  return objectLayer(file, `policy.${key}`);
}

/** Reads a policy file. A file that cannot be read gives an empty layer with one problem. */
export async function readFileLayer(
  file: string | URL,
  name: string = String(file),
  variable?: string,
): Promise<PolicyLayer> {
  try {
    return readYamlLayer(await readFile(file, "utf8"), name);
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
}
