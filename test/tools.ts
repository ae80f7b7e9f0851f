/**
 * Programs that some tests need beside Node. Where one is missing it is installed, if that may be done; otherwise its tests
 * are skipped, which is a failure in CI (scripts/test.ts).
 */
import { spawnSync } from "node:child_process";

export interface Tool {
  readonly name: string;
  /** Commands by which it is found, the first that exists. */
  readonly commands: readonly string[];
  /** Debian's package. */
  readonly debian: string;
}

export const REDIS: Tool = { name: "redis-server", commands: ["redis-server"], debian: "redis-server" };
export const CHROMIUM: Tool = {
  name: "chromium",
  commands: ["chromium", "chromium-browser", "google-chrome"],
  debian: "chromium",
};
export const TOOLS: readonly Tool[] = [REDIS, CHROMIUM];

/** Names that the runner has looked for in vain, so that no test file tries to install them again. */
export const MISSING_VARIABLE = "TEST_TOOLS_MISSING";

/** Where the tool is; undefined where it cannot be had. */
export function pathOf(tool: Tool): string | undefined {
  const missing = process.env[MISSING_VARIABLE]?.split(",") ?? [];
  if (missing.includes(tool.name)) return undefined;
  return found(tool) ?? (install(tool) ? found(tool) : undefined);
}

/** False, or the reason for which tests that need the tool are skipped. */
export function whyMissing(tool: Tool): string | false {
  if (pathOf(tool) !== undefined) return false;
  return `${tool.name} is not on PATH and cannot be installed here`;
}

function found({ commands }: Tool): string | undefined {
  for (const command of commands) {
    const { status, stdout } = spawnSync("sh", ["-c", `command -v ${command}`], { encoding: "utf8" });
    if (status === 0) return stdout.trim();
  }
  return undefined;
}

/** Only as root, where apt-get is. RUNLEVEL keeps the package from starting a service. */
function install({ debian }: Tool): boolean {
  if (process.getuid?.() !== 0 || spawnSync("apt-get", ["--version"]).status !== 0) return false;
  process.stderr.write(`installing ${debian} for the tests ...\n`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const apt = (...args: string[]) =>
    spawnSync("apt-get", ["-o", "DPkg::Lock::Timeout=180", ...args], { env, timeout: 400_000 }).status === 0;
  const packages = ["install", "-y", "--no-install-recommends", debian];
  return apt(...packages) || (apt("update") && apt(...packages));
}
