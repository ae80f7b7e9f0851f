/** A SQLite file, on a small file system of its own where mounting is permitted. */
import { execFileSync } from "node:child_process";
import { mkdtemp, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { ChaosProcess } from "../chaos-process.ts";
import { type FaultKind, type FaultyStore, simpleFault } from "../fault.ts";

/** Enough for the file and its log. */
const DISK = "4m";

export async function startSqlite(): Promise<FaultyStore> {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-chaos-"));
  const isMounted = mount("-t", "tmpfs", "-o", `size=${DISK}`, "tmpfs", folder);
  const file = join(folder, "limits.db");
  return {
    url: `sqlite:${file}`,
    ports: [],
    faults: [
      deleted(file),
      locked(file),
      truncated(folder, file),
      ...(isMounted ? [diskFull(folder), readOnly(folder)] : []),
    ],
    missing: isMounted
      ? []
      : ["disk-full and read-only need a file system of their own, and mounting is not permitted"],
    close: async () => {
      if (isMounted) execFileSync("umount", ["--recursive", "--lazy", folder]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function deleted(file: string): FaultKind {
  const remove = async () => {
    for (const name of [file, `${file}-wal`, `${file}-shm`]) await rm(name, { force: true });
  };
  return simpleFault("deleted", [0, 0], remove, async () => undefined);
}

/** The copies of earlier damaged files are removed: a few of them would fill the small disk for the rest of the run. */
function truncated(folder: string, file: string): FaultKind {
  const truncateFile = async () => {
    for (const name of await readdir(folder)) if (name.includes(".damaged-")) await rm(join(folder, name));
    await truncate(file, 100);
  };
  return simpleFault("truncated", [0, 0], truncateFile, async () => undefined);
}

/** Another program holds the write lock. */
function locked(file: string): FaultKind {
  let other: DatabaseSync | undefined;
  return simpleFault(
    "locked",
    [300, 10_000],
    async () => {
      other = new DatabaseSync(file, { timeout: 2000 });
      other.exec("BEGIN IMMEDIATE");
    },
    async () => other?.close(),
  );
}

function diskFull(folder: string): FaultKind {
  const filler = join(folder, "filler");
  return simpleFault(
    "disk-full",
    [500, 5000],
    async () => {
      // The write fails when the disk is full; the part that was written fills the disk.
      await writeFile(filler, Buffer.alloc(64 * 1024 * 1024)).catch(() => undefined);
    },
    () => rm(filler, { force: true }),
  );
}

/** Processes that have opened the file keep their rights. The one that is started again may not write. */
function readOnly(folder: string): FaultKind {
  return {
    name: "read-only",
    draw: (random, fleet) => {
      const process: ChaosProcess = random.pick(fleet);
      return {
        name: "read-only",
        detail: `restart of process ${process.index}`,
        durationMs: random.whole(500, 3000),
        separated: 0,
        returnsStore: true,
        begin: async () => {
          await process.kill();
          mount("--bind", folder, folder);
          mount("-o", "remount,bind,ro", folder);
          await process.start({ mayEnd: true });
        },
        end: async () => {
          execFileSync("umount", ["--lazy", folder]);
          if (!process.isRunning) await process.start();
        },
      };
    },
  };
}

function mount(...args: readonly string[]): boolean {
  try {
    execFileSync("mount", args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
