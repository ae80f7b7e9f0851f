import { nearest } from "../core/text/nearest.ts";

/** For messages about an unknown name: the most similar valid name, or the list of valid names. */
export function nameHint(name: string, valid: readonly string[]): string {
  const similar = nearest(name, valid);
  return similar === undefined ? `valid: ${valid.join(", ")}` : `did you mean ${similar}?`;
}
