/**
 * `node --import docstokg/register app.js`: every fetch of an unchanged program passes a hub that is configured by the
 * environment alone.
 */
import { EnvHttpProxyAgent } from "undici";
import { ConfigError } from "./errors.ts";
import { createHub } from "./http/create-hub.ts";
import type { HubOptions } from "./http/hub-options.ts";

/** A program that asked to be polite must not run impolite because of a typo. */
function refuse(problem: string): never {
  process.stderr.write(`docstokg: ${problem}\n`);
  process.exit(2);
}

function cacheFrom(value: string | undefined): HubOptions["cache"] {
  if (value === undefined || value === "" || value === "memory") return "memory";
  if (value === "off") return false;
  if (/^sqlite:./.test(value)) return value as `sqlite:${string}`;
  return refuse(`DOCSTOKG_CACHE=${value}: expected memory, off or sqlite:<file>`);
}

/** The proxies that Node itself would use, where it was told to. */
function proxies(): Pick<HubOptions, "dispatcher"> {
  return process.env["NODE_USE_ENV_PROXY"] === "1" ? { dispatcher: new EnvHttpProxyAgent() } : {};
}

/** The hub that is installed, for whoever wants to look at it. */
export const hub = await createHub({ ...proxies(), cache: cacheFrom(process.env["DOCSTOKG_CACHE"]) }).catch(error => {
  if (error instanceof ConfigError) return refuse(error.message);
  throw error;
});
hub.install();

// NODE_DEBUG=docstokg prints the policy. Only then are the modules that format it loaded.
if (process.env["NODE_DEBUG"] !== undefined) {
  const { printDebugPolicy } = await import("./cli/docstokg/debug-policy.ts");
  await printDebugPolicy(process, async () => ({ env: process.env }));
}
