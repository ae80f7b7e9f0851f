/** nginx with `limit_req`, in a folder of its own. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { RedisServer } from "../../../test/stores/redis-server.ts";
import { type Folder, openFolder } from "../../stores/folder.ts";
import { ArrivalLog, type ServerReport } from "../arrivals.ts";
import type { RaceLimits } from "../limits.ts";
import { roleOfPath, WARM_PATH } from "../paths.ts";
import type { NginxSetup } from "../scenario.ts";

/** At most one request a minute, in a zone of its own. */
const CHECK_PATH = "/check";

/** Such as `1.22.1`; undefined if nginx is not installed. */
export function nginxVersion(): string | undefined {
  const { stderr, status } = spawnSync("nginx", ["-v"], { encoding: "utf8" });
  return status === 0 ? stderr.trim().split("/").at(-1) : undefined;
}

export class NginxServer implements AsyncDisposable {
  readonly origin: string;
  readonly #limits: RaceLimits;
  readonly #folder: Folder;
  readonly #process: ChildProcess;

  private constructor(port: number, limits: RaceLimits, folder: Folder, process: ChildProcess) {
    this.origin = `http://127.0.0.1:${port}`;
    this.#limits = limits;
    this.#folder = folder;
    this.#process = process;
  }

  static async start({ rate, burst }: NginxSetup, limits: RaceLimits): Promise<NginxServer> {
    const folder = openFolder();
    const port = await RedisServer.freePort();
    writeFileSync(folder.file("ok.json"), '{"status":"ok"}\n');
    writeFileSync(folder.file("nginx.conf"), configOf(folder, port, rate, burst));
    // Its worker process has a user of its own.
    chmodSync(dirname(folder.file("ok.json")), 0o755);
    const child = spawn("nginx", ["-c", folder.file("nginx.conf"), "-e", "stderr"], { stdio: ["ignore", 2, "pipe"] });
    const server = new NginxServer(port, limits, folder, child);
    await server.#started();
    await server.#checkEnforcement();
    return server;
  }

  /** Its messages say when it listens. Rejects with them if it ends first. */
  async #started(): Promise<void> {
    let printed = "";
    for await (const chunk of this.#process.stderr ?? []) {
      printed += chunk;
      if (!printed.includes("start worker process ")) continue;
      return;
    }
    throw new Error(`nginx did not start: ${printed}`);
  }

  /** A zone without a key counts nothing, and nginx says nothing about it. */
  async #checkEnforcement(): Promise<void> {
    const first = await fetch(`${this.origin}${CHECK_PATH}`);
    const second = await fetch(`${this.origin}${CHECK_PATH}`);
    if (first.status !== 200 || second.status !== 429)
      throw new Error(`nginx does not enforce limit_req: ${first.status}, ${second.status} instead of 200, 429`);
  }

  async report(): Promise<ServerReport> {
    return reportOfLog(readFileSync(this.#folder.file("access.log"), "utf8"), this.#limits);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, "exit");
    if (this.#process.exitCode === null) {
      this.#process.kill("SIGTERM");
      await ended;
    }
    this.#folder[Symbol.dispose]();
  }
}

/** A line is the time in seconds, the status and the path. */
export function reportOfLog(text: string, limits: RaceLimits): ServerReport {
  const log = new ArrivalLog();
  for (const line of text.split("\n")) {
    const [seconds = "", status = "", path = ""] = line.split(" ");
    if (path === "" || path === WARM_PATH || path === CHECK_PATH) continue;
    log.add({ atMs: Number(seconds) * 1000, role: roleOfPath(path), status: Number(status) });
  }
  return log.report(limits);
}

function configOf(folder: Folder, port: number, rate: string, burst: number): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    kind => `  ${kind}_temp_path ${folder.file(kind)};`,
  );
  return [
    "daemon off;",
    "worker_processes 1;",
    "error_log stderr notice;",
    `pid ${folder.file("nginx.pid")};`,
    "events {}",
    "http {",
    ...temporary,
    "  log_format race '$msec $status $request_uri';",
    `  access_log ${folder.file("access.log")} race;`,
    "  keepalive_requests 1000000;",
    "  default_type application/json;",
    `  limit_req_zone $binary_remote_addr zone=race:1m rate=${rate};`,
    "  limit_req_zone $binary_remote_addr zone=check:1m rate=1r/m;",
    "  limit_req_status 429;",
    "  server {",
    `    listen 127.0.0.1:${port};`,
    `    root ${dirname(folder.file("ok.json"))};`,
    `    location = ${WARM_PATH} { try_files /ok.json =404; }`,
    `    location = ${CHECK_PATH} { limit_req zone=check; try_files /ok.json =404; }`,
    `    location / { limit_req zone=race${burst === 0 ? "" : ` burst=${burst} nodelay`}; try_files /ok.json =404; }`,
    "  }",
    "}",
    "",
  ].join("\n");
}
