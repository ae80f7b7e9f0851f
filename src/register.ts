/**
 * `node --import docstokg/register app.js` sends every fetch of an unchanged program through a hub that is configured by
 * environment variables alone.
 */
import "./http/supported-runtime.ts";
import { quote } from "./core/text/quote.ts";
import { ConfigError, StoreError } from "./errors.ts";
import { createHub } from "./http/create-hub.ts";
import type { HubOptions } from "./http/hub-options.ts";

/**
 * An invalid configuration, or a store that can never work, ends the program: running on without its limits would be
 * worse.
 */
function exitWithProblem(problem: string, exitCode: 1 | 2): never {
  process.stderr.write(`docstokg: ${problem}\n`);
  process.exit(exitCode);
}

function cacheFrom(value: string | undefined): HubOptions["cache"] {
  if (value === undefined || value === "" || value === "memory") return "memory";
  if (value === "off") return false;
  if (/^sqlite:./.test(value)) return value as `sqlite:${string}`;
  // The value may be the URL of a database. The message of a ConfigError contains no password.
  const message = `${quote(value)} is not one of memory, off, sqlite:<file>`;
  return exitWithProblem(new ConfigError([{ where: "DOCSTOKG_CACHE", path: "", message }]).message, 2);
}

/** With NODE_USE_ENV_PROXY=1 or --use-env-proxy, Node uses HTTP_PROXY, HTTPS_PROXY and NO_PROXY. So does the hub. */
function networkOptions(): Pick<HubOptions, "network"> {
  const { env, execArgv } = process;
  const flags = [...execArgv, ...(env["NODE_OPTIONS"] ?? "").split(/\s+/)];
  const usesProxy = env["NODE_USE_ENV_PROXY"] === "1" || flags.includes("--use-env-proxy");
  return usesProxy ? { network: { proxy: "env" } } : {};
}

/** The installed hub, to listen to its events or read its snapshot. It is never closed, and keeps no process alive. */
export const hub = await createHub({ ...networkOptions(), cache: cacheFrom(process.env["DOCSTOKG_CACHE"]) }).catch(
  error => {
    if (error instanceof ConfigError) return exitWithProblem(error.message, 2);
    if (error instanceof StoreError) return exitWithProblem(error.message, 1);
    throw error;
  },
);
hub.install();

// NODE_DEBUG=docstokg prints the policy. Only then are the modules that format it loaded.
if (process.env["NODE_DEBUG"] !== undefined) {
  const { printDebugPolicy } = await import("./cli/docstokg/debug-policy.ts");
  await printDebugPolicy(process, async () => ({ env: process.env }));
}
