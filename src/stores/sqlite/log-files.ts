import type { DatabaseSync } from "node:sqlite";
import { identityOf } from "./database-file.ts";
import { damageError } from "./sqlite-errors.ts";

/**
 * SQLite's log and its index beside an open database. They exist until the last process closes the database. If they are
 * deleted before, the last changes are lost: processes that open the database later see neither these nor the locks of the
 * others, so both would grant the same units.
 */
export class LogFiles {
  readonly #files: readonly string[];
  #identities: readonly bigint[] | undefined;

  constructor(db: DatabaseSync, path: string) {
    const mode = db.prepare("PRAGMA journal_mode").get()?.["journal_mode"];
    // A file system without shared memory has no log.
    this.#files = mode === "wal" ? [`${path}-wal`, `${path}-shm`] : [];
  }

  /** Throws an error that counts as damage of the database if a file was moved or deleted. */
  check(): void {
    const identities = this.#files.map((file, index) => {
      const identity = identityOf(file);
      const isSame = this.#identities === undefined || identity === this.#identities[index];
      if (identity === undefined || !isSame) throw damageError(`${file} was moved or deleted`);
      return identity;
    });
    this.#identities ??= identities;
  }
}
