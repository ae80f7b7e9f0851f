/** A complete and checked file on the local disk, which is deleted after `FileStorage.put`. */
export interface FileToPut {
  /** Absolute path of the local file. */
  readonly file: string;
  /** Size. */
  readonly bytes: number;
  /** SHA-256 as lower-case hex. */
  readonly sha256: string;
  /** `application/pdf`, `application/xml` or `text/html`; sources, supplements and metadata may have others. */
  readonly mediaType: string;
}

/**
 * Where `harvest` stores files, if not in a folder: a database, an archive, a service. Paths come from the hashes of files,
 * so that a path always has the same bytes; only metadata of a work may change at its path. If a method rejects, the
 * harvest ends, and the next harvest stores the file again.
 */
export interface FileStorage {
  /** Shown in messages. */
  readonly name: string;
  /**
   * Resolves when the file is stored durably; a harvest that stops waits for it. May be called again for a path that is
   * stored already, and then replaces its file.
   */
  put(path: string, file: FileToPut): Promise<void>;
  /** The size of a stored file; undefined if there is none. */
  bytesOf(path: string): Promise<number | undefined>;
  /** Deletes a file, if there is one. */
  delete(path: string): Promise<void>;
  /** The location of a stored file, such as its URL. Results report it as `path`. */
  locationOf(path: string): string;
}
