import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { errnoOf } from "./disk-errors.ts";

/** SHA-256 in lower-case hexadecimal. */
export function sha256Of(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** The hash of a file in lower-case hexadecimal; undefined if the file does not exist. */
export async function hashFile(
  path: string,
  signal?: AbortSignal,
  algorithm: "sha256" | "md5" = "sha256",
): Promise<string | undefined> {
  const hash = createHash(algorithm);
  try {
    for await (const chunk of createReadStream(path, { signal })) hash.update(chunk);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
  return hash.digest("hex");
}
