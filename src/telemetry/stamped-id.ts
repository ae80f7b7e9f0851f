import { randomBytes } from "node:crypto";

/** A time and a few random digits: `20261116T014500.123Z-3f9c1a`. Sorts by time; the digits keep it unique among processes. */
export function stampedId(wallMs: number): string {
  const stamp = new Date(wallMs).toISOString().replace(/[-:]/g, "");
  return `${stamp}-${randomBytes(3).toString("hex")}`;
}
