/** What every backend of the manifest does. */
import { filesContract } from "./manifest-files-contract.ts";
import type { OpenManifest } from "./manifest-kit.ts";
import { queueContract } from "./manifest-queue-contract.ts";
import { reportsContract } from "./manifest-reports-contract.ts";
import { robotsContract } from "./manifest-robots-contract.ts";
import { worksContract } from "./manifest-works-contract.ts";

export function manifestContract(open: OpenManifest): void {
  worksContract(open);
  queueContract(open);
  filesContract(open);
  reportsContract(open);
  robotsContract(open);
}
