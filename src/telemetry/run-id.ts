import { randomBytes } from "node:crypto";

/** When it began and a few random digits: `20261116T014500Z-3f9c1a`. Sorts by time. */
export function newRunId(wallMs: number): string {
  const stamp = new Date(wallMs).toISOString().replace(/\.\d+/, "").replace(/[-:]/g, "");
  return `${stamp}-${randomBytes(3).toString("hex")}`;
}
