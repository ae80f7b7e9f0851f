import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, cpus, platform, totalmem } from "node:os";
import { peerVersions } from "../kit/peers.ts";
import { CLIENTS } from "./client-spec.ts";

/** The machine of the measurement. */
export function machineName(): string {
  const gb = Math.round(totalmem() / 2 ** 30);
  return `${availableParallelism()} x ${cpus()[0]?.model ?? "unknown"}, ${gb} GB, ${platform()}, Node ${process.version}`;
}

/** Versions of all packages, by name. */
export function versionsOf(): Readonly<Record<string, string>> {
  const peers = peerVersions();
  const ours = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };
  const { version: undici } = createRequire(import.meta.url)("undici/package.json") as { version: string };
  const versions: Record<string, string> = { docstokg: ours.version };
  for (const { package: name } of CLIENTS)
    if (name !== undefined) versions[name] = name === "undici" ? undici : (peers[name] ?? "unknown");
  return versions;
}
