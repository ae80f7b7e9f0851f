import { readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import type { Command } from "commander";
import { isLoopback } from "../../core/text/host.ts";
import { dashboardOf } from "../../dashboard/dashboard.ts";
import { LOOPBACK_NAMES } from "../../dashboard/request-guard.ts";
import { RunSource } from "../../dashboard/run-source.ts";
import type { DashboardSource } from "../../dashboard/source.ts";
import { StoreSource } from "../../dashboard/store-source.ts";
import { ConfigError } from "../../errors.ts";
import { manifestName, readManifest } from "../../harvest/manifest/manifest.ts";
import { loadPolicy } from "../../policy/load.ts";
import { openTelemetryFile } from "../../telemetry/reading/telemetry-file.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { readProblem } from "../file-problems.ts";
import type { CommandModule, Flags, Io } from "../program.ts";
import { usageError, wholeNumberFlag } from "../usage-error.ts";
import { auditLine, serveDashboard } from "./dashboard-server.ts";
import { pathsOf, telemetryFolderOf } from "./path-flags.ts";
import { policySources } from "./policy-flags.ts";
import { addStoreFlag, openOperatorConnection, openStoreConnection } from "./store-connection.ts";

const LOOPBACK = "127.0.0.1";

/** `docstokg dashboard`: serves the live page until Ctrl-C. */
export const dashboard: CommandModule = {
  configure: command => {
    command
      .option("--run <folder>", "output folder of a running or finished run, instead of a store")
      .option(
        "--manifest <manifest>",
        "manifest of the run: a file, or postgres://user@host/database (default: DOCSTOKG_MANIFEST, else manifest.sqlite in the folder of --run)",
      );
    addStoreFlag(command);
    addServerFlags(command);
  },
  run: async (_, flags, io) => {
    const server = await serverOptions(flags);
    if (flags["run"] !== undefined || flags["manifest"] !== undefined)
      return await serveUntilInterrupt(await openRunSource(flags, io), server, io);
    await using connection = await openStoreConnection(flags, io);
    // The page would stay up without the store, and wait for it: a wrong address must not look like an idle store.
    await connection.observer.processes();
    await using operatorConnection = server.isReadOnly ? undefined : await openOperatorConnection(flags, io);
    const source = new StoreSource({
      observer: connection.observer,
      operator: operatorConnection?.operator,
      policy: connection.policy,
      storeName: connection.storeName,
      time: io.time ?? systemTime,
      check: () => connection.checkStoreFile(),
    });
    return await serveUntilInterrupt(source, server, io);
  },
};

function addServerFlags(command: Command): void {
  command
    .option("--port <number>", "port to listen on; 0 for any free port", "0")
    .option(
      "--listen <address>",
      "address to listen on; --token-file is required unless it is a loopback address",
      LOOPBACK,
    )
    .option("--token-file <file>", "file with the access token, at least 16 characters (default: a random token)")
    .option("--read-only", "show everything, and refuse every change");
}

/**
 * The telemetry is beside a manifest file; with a PostgreSQL manifest it is in the output folder, or in
 * `docstokg-telemetry` if the output is in S3.
 */
async function openRunSource(flags: Flags, io: Io): Promise<RunSource> {
  if (flags["store"] !== undefined) throw usageError("--store", "has no effect with --run or --manifest");
  const paths = pathsOf({ out: flags["run"], manifest: flags["manifest"] }, io);
  const { time = systemTime } = io;
  const policy = await loadPolicy(policySources(flags, io));
  const manifest = await readManifest(paths.manifest, time);
  if (manifest === undefined) {
    const flag = flags["manifest"] === undefined ? "--run" : "--manifest";
    throw usageError(flag, `manifest not found: ${manifestName(paths.manifest)}`);
  }
  const folder = telemetryFolderOf(paths);
  const telemetry = await openTelemetryFile(folder).catch(async error => {
    // A run with --no-telemetry has none.
    if (error instanceof ConfigError) return undefined;
    await manifest.close();
    throw error;
  });
  return new RunSource({ folder, manifest, telemetry, policy, time });
}

interface ServerOptions {
  readonly port: number;
  readonly address: string;
  readonly loopbackName: string | undefined;
  readonly token: string | undefined;
  readonly tokenFile: string | undefined;
  readonly isReadOnly: boolean;
}

async function serverOptions(flags: Flags): Promise<ServerOptions> {
  const port = wholeNumberFlag("--port", flags["port"], 0, 65_535);
  const address = String(flags["listen"]);
  const tokenFile = typeof flags["tokenFile"] === "string" ? flags["tokenFile"] : undefined;
  const loopbackName = loopbackNameOf(address);
  if (loopbackName === undefined && tokenFile === undefined)
    throw usageError("--listen", `${address} can be reached from other machines, which needs --token-file`);
  const token = tokenFile === undefined ? undefined : await tokenIn(tokenFile);
  return { port, address, loopbackName, token, tokenFile, isReadOnly: flags["readOnly"] === true };
}

/** The name of a loopback address in the URL of the page; undefined for an address that other machines may reach. */
function loopbackNameOf(address: string): string | undefined {
  const name = URL.parse(`http://${isIPv6(address) ? `[${address}]` : address}`)?.hostname;
  return name !== undefined && isLoopback(name) ? name : undefined;
}

/** The output of a system service (systemd) is kept in logs, so a token that the operator has chosen is not printed. */
function printedUrl(url: string, tokenFile: string | undefined): string {
  return tokenFile === undefined ? url : `${new URL("/", url)}?token=… (the token is in ${tokenFile})`;
}

async function tokenIn(file: string): Promise<string> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    throw usageError("--token-file", readProblem(file, error));
  }
}

/** Serves until Ctrl-C (exit code 130), or until the reader closes stdout (exit code 0), as `--watch` does. */
async function serveUntilInterrupt(source: DashboardSource, options: ServerOptions, io: Io): Promise<ExitCode> {
  const { port, address, loopbackName, token, tokenFile, isReadOnly } = options;
  const handler = await openDashboard(source, options, io);
  const server = await serveDashboard(handler, { port, address }, { port: "--port", address: "--listen" });
  io.stdout.write(`Dashboard: ${printedUrl(server.url, tokenFile)}\n`);
  if (loopbackName === undefined)
    io.stderr.write("The connection is not encrypted. For other machines, use a proxy with TLS in front of it.\n");
  if (token === undefined && !isReadOnly && source.actions !== undefined)
    io.stdout.write(
      "With this URL, circuits can be opened and limits changed in the running processes (--read-only prevents this).\n",
    );
  const { promise: ended, resolve: end } = Promise.withResolvers<ExitCode>();
  const stopListening = io.onInterrupt?.(() => end(ExitCode.interrupted));
  const onOutputClosed = () => end(ExitCode.ok);
  if (io.outputClosed?.aborted) onOutputClosed();
  io.outputClosed?.addEventListener("abort", onOutputClosed);
  try {
    return await ended;
  } finally {
    io.outputClosed?.removeEventListener("abort", onOutputClosed);
    stopListening?.();
    await server.close();
  }
}

/** Closes the source if the dashboard cannot be opened. */
async function openDashboard(source: DashboardSource, { loopbackName, token, isReadOnly }: ServerOptions, io: Io) {
  try {
    return dashboardOf(source, {
      token,
      readOnly: isReadOnly,
      // Other machines may use any host name of this server. The token, kept in a SameSite=Strict cookie, protects it
      // against requests from other sites.
      hosts: loopbackName === undefined ? "any" : [...LOOPBACK_NAMES, loopbackName],
      time: io.time,
      onAction: action => io.stderr.write(`${auditLine(action)}\n`),
    });
  } catch (error) {
    await source.close();
    if (error instanceof RangeError) throw usageError("--token-file", error.message);
    throw error;
  }
}
