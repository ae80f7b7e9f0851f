import { workOf } from "../../harvest/identifiers/identifiers.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import type { SimulatedWork } from "../../testing/internet/catalogue.ts";
import { systemTime } from "../../time/system-time.ts";
import type { RunSettings } from "./run-settings.ts";

/** The downloaded files, compared with the copies on the simulated servers. */
export interface FileComparison {
  /** Works with a copy that the resolvers of the run can find. */
  readonly expected: number;
  /** Expected works whose file is identical to the server's copy. */
  readonly matching: number;
  /** Keys of expected works without a file. A work whose file differs is neither matching nor missing. */
  readonly missing: readonly string[];
}

export async function compareFiles(
  works: readonly SimulatedWork[],
  settings: Pick<RunSettings, "manifest" | "resolvers">,
): Promise<FileComparison> {
  const manifest = await openManifest(settings.manifest, systemTime);
  const resolvers = new Set(settings.resolvers.map(({ name }) => name));
  try {
    const hashes = new Map<string, string>();
    for await (const { key, files } of manifest.reports.workRecords()) {
      const [file] = files;
      if (file !== undefined) hashes.set(key, file.sha256);
    }
    // A copy that is known only to services with API keys cannot be found in the demo.
    const isExpected = ({ copies }: SimulatedWork) =>
      copies.some(({ isGood, via }) => isGood && via.some(name => resolvers.has(name)));
    const expected = works.filter(isExpected).map(work => ({ work, key: workOf(work.ids).key }));
    return {
      expected: expected.length,
      matching: expected.filter(({ work, key }) => hashes.get(key) === work.file.sha256).length,
      missing: expected.filter(({ key }) => !hashes.has(key)).map(({ key }) => key),
    };
  } finally {
    await manifest.close();
  }
}
