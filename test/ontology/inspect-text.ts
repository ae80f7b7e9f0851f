import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import {
  type CheckDepth,
  type Inspection,
  type InspectionOptions,
  inspectFile,
} from "../../src/ontology/file-inspection.ts";

const folder = mkdtempSync(join(tmpdir(), "ontofetch-inspect-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

/** Inspects a file with this content. */
export async function inspect(
  content: string | Uint8Array,
  options: InspectionOptions & { readonly depth?: CheckDepth } = {},
): Promise<Inspection> {
  files += 1;
  const path = join(folder, String(files));
  writeFileSync(path, content);
  return inspectFile(path, options.depth ?? "full", options);
}

/** The format of a valid file, or why it is not valid. */
export async function verdict(content: string | Uint8Array, options: InspectionOptions = {}): Promise<string> {
  const found = await inspect(content, options);
  return found.kind === "valid" ? found.format : `${found.kind}: ${found.problem}`;
}
