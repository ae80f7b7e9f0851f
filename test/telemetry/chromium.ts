/**
 * A real browser for pages that we make. Where there is none it is installed, if that may be done; otherwise the tests
 * that need one are skipped, and say so; in CI that is a failure.
 */
import { spawnSync } from "node:child_process";
import { type Browser, chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];
/** Nothing goes out, and nothing is needed from a desktop. */
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

let path: string | undefined;

/** False, or the reason for which tests that need a browser are skipped. */
export function whyNoBrowser(): string | false {
  path ??= installed() ?? (install() ? installed() : undefined);
  if (path !== undefined) return false;
  process.stderr.write("\n*** No chromium on PATH, and it cannot be installed here: its tests are SKIPPED. ***\n\n");
  return "there is no chromium on PATH";
}

/** One for all tests of a file, which closes it when they are over. */
export async function startBrowser(): Promise<Browser> {
  if (path === undefined) throw new Error("ask whyNoBrowser first");
  return chromium.launch({ executablePath: path, args: ARGS });
}

function installed(): string | undefined {
  for (const name of NAMES) {
    const { status, stdout } = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" });
    if (status === 0) return stdout.trim();
  }
  return undefined;
}

/** Only as root, where apt-get is. */
function install(): boolean {
  if (process.getuid?.() !== 0 || spawnSync("apt-get", ["--version"]).status !== 0) return false;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const apt = (...args: string[]) =>
    spawnSync("apt-get", ["-o", "DPkg::Lock::Timeout=180", ...args], { env, timeout: 400_000 }).status === 0;
  const packages = ["install", "-y", "--no-install-recommends", "chromium"];
  return apt(...packages) || (apt("update") && apt(...packages));
}
