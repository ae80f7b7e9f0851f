import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Folder extends Disposable {
  file(name: string): string;
}

/** A temporary folder that is deleted when it is disposed of. */
export function openFolder(): Folder {
  const path = mkdtempSync(join(tmpdir(), "docstokg-bench-"));
  return {
    file: name => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}
