import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorksReport } from "./works-report.ts";
import { worksSection } from "./works-section.ts";

const REPORT: WorksReport = {
  works: { total: 0, done: 0, failed: 0, pending: 0, merged: 0 },
  ...{ reasons: [], yields: [], fileKinds: [], lastFailed: [] },
  files: { count: 1, bytes: 0 },
};

test("sizes in the report of works have three digits and a unit, also just below the next unit", () => {
  const sizes: readonly (readonly [bytes: number, text: string])[] = [
    ...([
      [0, "0 B"],
      [999, "999 B"],
      [1000, "1.00 kB"],
      [999_499, "999 kB"],
      [999_999, "1.00 MB"],
    ] as const),
    ...([
      [12_345_678, "12.3 MB"],
      [999_900_000_000, "1.00 TB"],
      [2_500_000_000_000_000, "2,500 TB"],
    ] as const),
  ];
  for (const [bytes, size] of sizes) {
    const { text } = worksSection({ ...REPORT, files: { count: 1, bytes } }, { hosts: [] });
    assert.ok(text.includes(`files, ${size}<`), size);
  }
});
