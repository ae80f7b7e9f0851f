import { ConfigError } from "../../errors.ts";
import { isS3Url } from "../../files/s3/s3-url.ts";
import { checkPolicy } from "../../policy/check-file.ts";
import { type LoadedPolicy, loadPolicy } from "../../policy/load.ts";
import { systemTime } from "../../time/system-time.ts";
import { type DoctorFinding, printFindings } from "../output/doctor-findings.ts";
import type { CommandModule, Flags, Io } from "../program.ts";
import {
  clockCheck,
  contactCheck,
  diskCheck,
  keysCheck,
  nodeCheck,
  policyChecks,
  proxyCheck,
} from "./doctor-checks.ts";
import { addFolderFlag, folderOf } from "./path-flags.ts";
import { addPolicyFlags, policySources } from "./policy-flags.ts";
import { addStoreFlag, openOptionalStoreConnection } from "./store-connection.ts";

/** `docstokg doctor`: checks whether programs can work here. Sends no request to a service. */
export const doctor: CommandModule = {
  configure: command => {
    command.option("--json", "print JSON");
    addFolderFlag(command);
    addStoreFlag(command);
    addPolicyFlags(command);
  },
  run: async (_, flags, io) => {
    const sources = policySources(flags, io);
    const nowMs = (io.time ?? systemTime).wallMs();
    const checked = await checkPolicy(sources, { nowMs });
    const findings = [nodeCheck(process.versions), ...policyChecks(checked)];
    if (checked.problems.length === 0) {
      const policy = await loadPolicy(sources);
      findings.push(await storeCheck(flags, io), clockCheck(nowMs), ...identityChecks(policy, io));
    }
    findings.push(proxyCheck(io.env), await outputCheck(folderOf(flags)));
    return printFindings(io, findings, flags["json"] === true);
  },
};

/** Files for S3 are on the disk of this machine until they are complete. */
async function outputCheck(folder: string): Promise<DoctorFinding> {
  if (!isS3Url(folder)) return diskCheck(folder);
  const root = (await import("../../harvest/storage/s3-store.ts")).partsRoot();
  const { detail, ...finding } = await diskCheck(root);
  return { ...finding, detail: `${detail}, for partial files of ${folder}` };
}

const MISSING_FOLDER = "check the path; a program that uses the store creates its folder";

function identityChecks(policy: LoadedPolicy, { env }: Io): readonly DoctorFinding[] {
  return [contactCheck(env), keysCheck(policy, env)];
}

/** An invalid `--store` is a usage error of this command, and not a finding. */
function isFlagProblem(error: Error): boolean {
  return error instanceof ConfigError && error.problems.some(({ where }) => where === "--store");
}

/** Connects to the shared store and reads which processes use it. */
async function storeCheck(flags: Flags, io: Io): Promise<DoctorFinding> {
  const what = "store";
  try {
    await using connection = await openOptionalStoreConnection(flags, io);
    if (!("problem" in connection)) {
      const { length } = await connection.observer.processes();
      return {
        what,
        verdict: "ok",
        detail: `${connection.storeName}, ${length} running process${length === 1 ? "" : "es"}`,
      };
    }
    const { problem, cause } = connection;
    if (cause === "not-configured")
      return { what, verdict: "ok", detail: "memory: each process has its own limits and circuits" };
    if (cause === "no-folder") return { what, verdict: "warning", detail: problem, advice: MISSING_FOLDER };
    return { what, verdict: cause === "unused" ? "ok" : "problem", detail: problem };
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || isFlagProblem(error)) throw error;
    const detail = error.message;
    if (error instanceof ConfigError) return { what, verdict: "problem", detail };
    return {
      what,
      verdict: "problem",
      detail,
      advice: "start the store, or correct its address (backend in ratelimits.yaml, DOCSTOKG_RLIMIT_DSN or --store)",
    };
  }
}
