import { createHash } from "node:crypto";
import { makePdf } from "./pdf.ts";

/** The input from which the file of an article is generated, always with the same bytes. */
export interface ArticlePlan {
  readonly seed: string;
  readonly title: string;
  readonly name: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

/** An article plan with the hash of its file. */
export interface Article extends ArticlePlan {
  readonly md5: string;
}

/** Generated for each request, because thousands of files would need too much memory. */
export function articleFile({ seed, title, name, bytes }: ArticlePlan): Buffer {
  return makePdf(seed, { title, lines: [name, "A work of the simulated internet."] }, bytes);
}

export function digest(algorithm: "md5" | "sha1" | "sha256", bytes: Uint8Array | string): string {
  return createHash(algorithm).update(bytes).digest("hex");
}
