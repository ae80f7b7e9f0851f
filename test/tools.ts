/**
 * Programs that some tests need. A missing one is installed if possible; otherwise its tests are skipped, which is a
 * failure in CI (scripts/test.ts).
 */
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";

export interface Tool {
  readonly name: string;
  /** Names of the command; the first one found is used. */
  readonly commands: readonly string[];
  /** Folders, apart from those on PATH, in which the package puts its commands. */
  readonly folders?: string | undefined;
  /** Name of the Debian package. */
  readonly debian: string;
}

export const REDIS: Tool = { name: "redis-server", commands: ["redis-server"], debian: "redis-server" };
export const CHROMIUM: Tool = {
  name: "chromium",
  commands: ["chromium", "chromium-browser", "google-chrome"],
  debian: "chromium",
};
/** Debian keeps the commands of each version of the server in a folder of their own. */
export const POSTGRES: Tool = {
  name: "postgresql",
  commands: ["initdb"],
  folders: "/usr/lib/postgresql/*/bin",
  debian: "postgresql",
};
export const ZSH: Tool = { name: "zsh", commands: ["zsh"], debian: "zsh" };
export const FISH: Tool = { name: "fish", commands: ["fish"], debian: "fish" };
/** Renders man pages. */
export const GROFF: Tool = { name: "groff", commands: ["groff"], debian: "groff" };
export const TOOLS: readonly Tool[] = [REDIS, POSTGRES, CHROMIUM, ZSH, FISH, GROFF];

/** Tools that the test runner could not find, so that no test file tries to install them again. */
export const MISSING_VARIABLE = "TEST_TOOLS_MISSING";

/** Path of the tool; undefined when it is missing and cannot be installed. */
export function pathOf(tool: Tool): string | undefined {
  const missing = process.env[MISSING_VARIABLE]?.split(",") ?? [];
  if (missing.includes(tool.name)) return undefined;
  return found(tool) ?? (install(tool) ? found(tool) : undefined);
}

/** False, or the reason why tests that need the tool are skipped. */
export function whyMissing(tool: Tool): string | false {
  if (pathOf(tool) !== undefined) return false;
  return `${tool.name} is not on PATH and cannot be installed here`;
}

function found({ commands, folders }: Tool): string | undefined {
  const path = [process.env["PATH"], ...(folders === undefined ? [] : globSync(folders))].join(":");
  for (const command of commands) {
    const { status, stdout } = spawnSync("sh", ["-c", `command -v ${command}`], {
      encoding: "utf8",
      env: { ...process.env, PATH: path },
    });
    if (status === 0) return stdout.trim();
  }
  return undefined;
}

/** Only as root, and with apt-get. RUNLEVEL prevents the package from starting a service. */
function install({ debian }: Tool): boolean {
  if (process.getuid?.() !== 0 || spawnSync("apt-get", ["--version"]).status !== 0) return false;
  process.stderr.write(`installing ${debian} for the tests ...\n`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const apt = (...args: string[]) =>
    spawnSync("apt-get", ["-o", "DPkg::Lock::Timeout=180", ...args], { env, timeout: 400_000 }).status === 0;
  const packages = ["install", "-y", "--no-install-recommends", debian];
  return apt(...packages) || (apt("update") && apt(...packages));
}
