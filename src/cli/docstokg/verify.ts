import { existsSync } from "node:fs";
import { isS3Url } from "../../files/s3/s3-url.ts";
import type { ManifestLock } from "../../harvest/manifest/manifest.ts";
import { type FileDamage, type FileStore, fileStoreFor } from "../../harvest/storage/file-store.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { interruptible } from "../interrupts.ts";
import { formatCount } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import type { CommandModule } from "../program.ts";
import { usageError } from "../usage-error.ts";
import {
  addFolderFlag,
  addManifestFlag,
  locationFlagsOf,
  openExistingManifest,
  pathsOf,
  readExistingManifest,
} from "./path-flags.ts";

interface FileProblem {
  readonly path: string;
  readonly role: string;
  readonly sha256: string;
  readonly problem: FileDamage;
  readonly works: number;
}

/** `docstokg verify`: computes the hash of every file again and compares it with the manifest. */
export const verify: CommandModule = {
  configure: command => {
    addFolderFlag(command);
    addManifestFlag(command);
    command
      .option("--repair", "rename changed files, and make the works of missing and changed files pending again")
      .option("--json", "print JSON");
  },
  run: (_, flags, io) =>
    interruptible(io, async signal => {
      const paths = pathsOf(flags, io);
      const { folder, manifest: path } = paths;
      const { ofRun } = locationFlagsOf(paths, io);
      const isRepair = flags["repair"] === true;
      const manifest = await (isRepair ? openExistingManifest(path) : readExistingManifest(path));
      let fileStore: FileStore | undefined;
      let lock: ManifestLock | undefined;
      try {
        fileStore = await fileStoreFor(folder, manifest.name, systemTime);
        lock = isRepair ? await manifest.tryLock() : undefined;
        if (isRepair && lock === undefined)
          throw usageError("--repair", `another docstokg run uses the manifest ${manifest.name}; wait until it ends`);
        const problems: FileProblem[] = [];
        const stored = await manifest.reports.storedFiles();
        const files = stored.length;
        // Otherwise every file would count as missing, and `--repair` would download all of them again.
        if (files > 0 && !isS3Url(folder) && !existsSync(folder))
          throw usageError(
            "--out",
            `folder not found: ${folder}; the manifest has ${formatCount(files, "file")} in it`,
          );
        for (const file of stored) {
          signal.throwIfAborted();
          const problem = await fileStore.damageOf(file);
          if (problem !== undefined) problems.push({ ...file, problem });
        }
        if (isRepair)
          for (const { path: name, problem } of problems) if (problem === "changed") await fileStore.setAside(name);
        const repaired = isRepair ? await manifest.works.reopen(problems.map(({ sha256 }) => sha256)) : 0;
        if (flags["json"] === true)
          printJson(io, {
            files,
            intact: files - problems.length,
            problems,
            repaired,
            folder,
            manifest: manifest.name,
          });
        else {
          const rows = problems.map(({ path: name, role, problem, works }) => [name, role, problem, String(works)]);
          const retry = problems.some(({ role }) => role !== "article") ? "retry --formats all" : "retry";
          const table = formatTable(["file", "role", "problem", "works"], rows, { columns: terminalWidth(io.stdout) });
          io.stdout.write(`${formatCount(files, "file")}, ${files - problems.length} intact\n`);
          if (problems.length > 0) io.stdout.write(`\n${table}`);
          if (isRepair)
            io.stdout.write(
              `${formatCount(repaired, "work")} pending again${repaired === 0 ? "." : `. To download them: docstokg ${retry}${ofRun}`}\n`,
            );
          else if (problems.length > 0)
            io.stdout.write(`\nTo make their works pending again: docstokg verify --repair${ofRun}\n`);
        }
        return problems.length === 0 ? ExitCode.ok : ExitCode.partial;
      } catch (error) {
        throw manifest.errorFrom(error);
      } finally {
        try {
          await manifest.close();
        } finally {
          lock?.release();
          fileStore?.close();
        }
      }
    }),
};
