import { createHash } from "node:crypto";
import { makePdf } from "./pdf.ts";

/** All that is needed to make an article's file again, byte for byte. */
export interface ArticlePlan {
  readonly seed: string;
  readonly title: string;
  readonly name: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

/** An article that has been made once, and what came of it. */
export interface Article extends ArticlePlan {
  readonly md5: string;
}

/** Made anew each time: thousands of files are cheaper to make than to keep. */
export function articleFile({ seed, title, name, bytes }: ArticlePlan): Buffer {
  return makePdf(seed, { title, lines: [name, "A work of the simulated internet."] }, bytes);
}

export function digest(algorithm: "md5" | "sha1" | "sha256", bytes: Uint8Array | string): string {
  return createHash(algorithm).update(bytes).digest("hex");
}
