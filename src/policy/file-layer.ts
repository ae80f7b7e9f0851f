import { readFile } from "node:fs/promises";
import { type PolicyLayer, readYamlLayer } from "./yaml-layer.ts";

const shipped = new Map<string, Promise<PolicyLayer>>();

/** One of the files that come with the package. They do not change while a program runs, so each is read once. */
export function readShippedLayer(key: string): Promise<PolicyLayer> {
  const file = new URL(`../../configs/networking/${key}.yaml`, import.meta.url);
  const known = shipped.get(key) ?? readFileLayer(file, `${key}.yaml (shipped)`);
  shipped.set(key, known);
  return known;
}

/** Reads a policy file. One that cannot be read is a layer that says nothing but its problem. */
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
    const message = code === "ENOENT" ? "there is no such file" : `it cannot be read (${code})`;
    return {
      assignments: [],
      problems: [{ where: variable === undefined ? name : `${variable}=${name}`, path: "", message }],
    };
  }
}
