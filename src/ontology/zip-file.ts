import { on } from "node:events";
import type { Readable } from "node:stream";
import type { Entry, ZipFile } from "yauzl";

export type { Entry, ZipFile } from "yauzl";

/** The caller must close the result. Rejects if the file has no valid central directory. */
export async function openZipFile(path: string): Promise<ZipFile> {
  const { open: openZip } = await import("yauzl");
  return new Promise((resolve, reject) => {
    // Some programs on Windows write backslashes, which become slashes here. Names that leave the archive are an error.
    openZip(path, { lazyEntries: true, autoClose: false, strictFileNames: false }, (error, zip) =>
      error ? reject(error) : resolve(zip),
    );
  });
}

/** The entries in the order of the central directory. They can be read once. */
export async function* zipEntries(zip: ZipFile): AsyncGenerator<Entry> {
  const events = on(zip, "entry", { close: ["end"] });
  zip.readEntry();
  for await (const [entry] of events) {
    yield entry;
    zip.readEntry();
  }
}

/** The unpacked bytes. The stream fails if their number differs from the one in the central directory. */
export function entryStream(zip: ZipFile, entry: Entry): Promise<Readable> {
  return new Promise((resolve, reject) => {
    zip.openReadStream(entry, (error, stream) => (error ? reject(error) : resolve(stream)));
  });
}
