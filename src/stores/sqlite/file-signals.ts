import { type FSWatcher, watch } from "node:fs";
import { chmod, stat, writeFile } from "node:fs/promises";
import type { SignalSubscription, SignalTopic, StoreSignals } from "../store.ts";

/**
 * Notifies the processes that share a database file. SQLite has no notifications, so each topic has a file
 * beside the database (`limits.db.orders`). The sender writes one byte to this file, and the operating system notifies the
 * processes that watch it. `utimes` would notify too, but only the owner may call it.
 */
export class FileSignals implements StoreSignals {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async send(topic: SignalTopic): Promise<void> {
    const file = this.#fileOf(topic);
    await create(file, this.#path);
    await writeFile(file, ".", { flag: "r+" });
  }

  listen(topic: SignalTopic, listener: () => void): SignalSubscription {
    return new FileSubscription(this.#fileOf(topic), this.#path, listener);
  }

  #fileOf(topic: SignalTopic): string {
    return `${this.#path}.${topic}`;
  }
}

/** Ends when the file is deleted or cannot be watched: some file systems have no notifications. */
class FileSubscription implements SignalSubscription {
  readonly #listener: () => void;
  #watcher: FSWatcher | undefined;
  #isStopped = false;

  constructor(file: string, database: string, listener: () => void) {
    this.#listener = listener;
    void this.#start(file, database).catch(() => this.stop());
  }

  get isActive(): boolean {
    return this.#watcher !== undefined;
  }

  stop(): void {
    this.#isStopped = true;
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  async #start(file: string, database: string): Promise<void> {
    await create(file, database);
    if (this.#isStopped) return;
    const watcher = watch(file, { persistent: false });
    watcher.on("error", () => this.stop());
    watcher.on("change", event => {
      // "rename": the file was deleted or replaced, so the watcher sees no further change. The caller listens again.
      if (event === "rename") this.stop();
      else this.#listener();
    });
    this.#watcher = watcher;
    // A signal may have been sent before the file was watched.
    this.#listener();
  }
}

/** Creates the file for the users that may use the database. Nothing happens if it exists. */
async function create(file: string, database: string): Promise<void> {
  try {
    const { mode } = await stat(database);
    await writeFile(file, "", { flag: "wx", mode: mode & 0o666 });
    // The umask of this process may be stricter than the mode of the database.
    await chmod(file, mode & 0o666);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}
