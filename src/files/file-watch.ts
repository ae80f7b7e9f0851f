import { type FSWatcher, watch } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Time, Timer } from "../time/time.ts";

export interface FileWatchOptions {
  readonly time: Time;
  /** Called after a file was changed, replaced, removed or created, and then not changed for SETTLED_MS. */
  readonly onChange: () => void;
  /** Called when the system stops reporting changes. */
  readonly onTrouble: (error: Error) => void;
}

/** A file that was not changed for this long counts as complete: it must not be read while it is being written. */
const SETTLED_MS = 100;

/**
 * Watches files through their folders, because editors replace a file by a new one of the same name. A folder of links
 * may also be replaced as a whole.
 */
export class FileWatch implements Disposable {
  readonly #files: readonly string[];
  readonly #options: FileWatchOptions;
  readonly #watchers: FSWatcher[] = [];
  /** The state that the last `onChange` reported. */
  #reportedState = "";
  /** A newer state, which is reported if it does not change for `SETTLED_MS`. */
  #pendingState = "";
  #timer: Timer | undefined;
  #isClosed = false;

  private constructor(files: readonly string[], options: FileWatchOptions) {
    this.#files = files.map(file => resolve(file));
    this.#options = options;
  }

  /** Rejects with the error of the system when a folder cannot be watched. */
  static async open(files: readonly string[], options: FileWatchOptions): Promise<FileWatch> {
    const opened = new FileWatch(files, options);
    try {
      opened.#watchFolders();
      opened.#reportedState = await opened.#state();
      return opened;
    } catch (error) {
      opened[Symbol.dispose]();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const watcher of this.#watchers) watcher.close();
  }

  #watchFolders(): void {
    for (const folder of new Set(this.#files.map(dirname))) {
      const watcher = watch(folder, { persistent: false }, () => this.#arm());
      watcher.on("error", error => this.#options.onTrouble(error));
      this.#watchers.push(watcher);
    }
  }

  #arm(): void {
    if (this.#isClosed) return;
    this.#timer ??= this.#options.time.setTimer(SETTLED_MS, () => {
      this.#timer = undefined;
      void this.#check();
    });
  }

  async #check(): Promise<void> {
    const state = await this.#state();
    if (this.#isClosed || state === this.#reportedState) return;
    if (state !== this.#pendingState) {
      this.#pendingState = state;
      this.#arm();
      return;
    }
    this.#reportedState = state;
    this.#options.onChange();
  }

  /** Differs after each change of a file. */
  async #state(): Promise<string> {
    const states = await Promise.all(
      this.#files.map(async file => {
        try {
          const { dev, ino, size, mtimeNs } = await stat(file, { bigint: true });
          return `${dev}:${ino}:${size}:${mtimeNs}`;
        } catch (error) {
          return String((error as NodeJS.ErrnoException).code);
        }
      }),
    );
    return states.join(" ");
  }
}
