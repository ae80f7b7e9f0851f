import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders = new Set<string>();

/**
 * A new folder, which is removed when the process ends. A hook of the test would remove it too early: hooks run in the
 * order in which they were added, so the hubs and stores that write to the folder would still be open.
 */
export function temporaryFolder(name: string): string {
  if (folders.size === 0) process.once("exit", removeAll);
  const folder = mkdtempSync(join(tmpdir(), `docstokg-${name}-`));
  folders.add(folder);
  return folder;
}

function removeAll(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
