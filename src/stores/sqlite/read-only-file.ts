import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { identityOf } from "./database-file.ts";
import { isUnusablePath } from "./sqlite-errors.ts";

/** The open file, for one read. To be disposed when the read has ended. */
export interface ReadConnection<Content> extends Disposable {
  readonly content: Content;
}

interface OpenFile<Content> {
  readonly db: DatabaseSync;
  readonly content: Content;
  readonly identity: bigint | undefined;
  /** Number of reads that have not ended. */
  reads: number;
}

/**
 * A database file that other processes write, opened for a user who may only read it. One connection serves all reads,
 * until the path names another file. An immutable connection sees nothing that is written later, so it serves one read.
 */
export class ReadOnlyFile<Content> {
  readonly #path: string;
  readonly #contentOf: (db: DatabaseSync) => Content;
  #kept: OpenFile<Content> | undefined;

  /** @param contentOf checks each connection, and prepares what the reads use */
  constructor(path: string, contentOf: (db: DatabaseSync) => Content) {
    this.#path = path;
    this.#contentOf = contentOf;
  }

  /** Throws the errors of SQLite and those of `contentOf`. Never waits. */
  connect(): ReadConnection<Content> {
    const identity = identityOf(this.#path);
    if (this.#kept?.identity !== identity) this.close();
    const file = this.#kept ?? this.#open(identity);
    file.reads += 1;
    return {
      content: file.content,
      [Symbol.dispose]: () => {
        file.reads -= 1;
        this.#closeIfUnused(file);
      },
    };
  }

  /** Reads that have not ended keep their connection until then. The next read opens the file again. */
  close(): void {
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept !== undefined) this.#closeIfUnused(kept);
  }

  #open(identity: bigint | undefined): OpenFile<Content> {
    const { db, isImmutable } = openReadOnly(this.#path);
    try {
      const file = { db, content: this.#contentOf(db), identity, reads: 0 };
      if (!isImmutable) this.#kept = file;
      return file;
    } catch (error) {
      db.close();
      throw error;
    }
  }

  #closeIfUnused(file: OpenFile<Content>): void {
    if (file !== this.#kept && file.reads === 0) file.db.close();
  }
}

/**
 * If the log of the file (`-wal`) is missing, SQLite creates it, which a user who may only read the file may not do. Then
 * no process has the file open, so it is opened as a file that does not change (`immutable`).
 */
function openReadOnly(path: string): { readonly db: DatabaseSync; readonly isImmutable: boolean } {
  // Not imported, because some supported versions of Node print a warning that it is experimental.
  const { DatabaseSync: Database } = process.getBuiltinModule("node:sqlite");
  const db = new Database(path, { readOnly: true, timeout: 0 });
  try {
    db.prepare("SELECT count(*) FROM sqlite_schema").get();
    return { db, isImmutable: false };
  } catch (error) {
    db.close();
    if (!isUnusablePath(error) || existsSync(`${path}-wal`)) throw error;
    const immutable = new Database(`${pathToFileURL(path).href}?immutable=1`, { readOnly: true, timeout: 0 });
    return { db: immutable, isImmutable: true };
  }
}
