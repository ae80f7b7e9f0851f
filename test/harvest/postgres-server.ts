/** Starts a PostgreSQL server for a test file, on a free port and with its data in a temporary folder. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { SqlRow } from "../../src/stores/postgres/postgres-driver.ts";
import { loadPgDriver } from "../../src/stores/postgres/postgres-driver.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { RedisServer } from "../stores/redis-server.ts";
import { POSTGRES, pathOf, whyMissing } from "../tools.ts";

/** The reason to skip tests that need a PostgreSQL server; false if they can run. */
export function whyNoPostgres(): string | false {
  return whyMissing(POSTGRES);
}

/** The server refuses to run as root. */
const NOBODY = 65_534;
const USER = "docstokg";

export class PostgresServer {
  readonly port: number;
  readonly #folder: string;
  readonly #commands: string;
  readonly #settings: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #schemas = 0;

  /** @param settings further settings of the server */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
    const server = new PostgresServer(await RedisServer.freePort(), settings);
    await server.start();
    return server;
  }

  private constructor(port: number, settings: Readonly<Record<string, string>>) {
    const initdb = pathOf(POSTGRES);
    if (initdb === undefined) throw new Error(String(whyNoPostgres()));
    this.port = port;
    this.#settings = settings;
    this.#commands = dirname(realpathSync(initdb));
    this.#folder = mkdtempSync(join(tmpdir(), "docstokg-postgres-"));
    if (this.#owner.uid !== undefined) chownSync(this.#folder, NOBODY, NOBODY);
    const args = [
      "-D",
      join(this.#folder, "data"),
      "-U",
      USER,
      "-A",
      "trust",
      "-E",
      "UTF8",
      "--locale",
      "C",
      "--no-sync",
    ];
    execFileSync(join(this.#commands, "initdb"), args, { ...this.#owner, cwd: this.#folder, stdio: "ignore" });
  }

  /** A URL with a schema of its own, so that every test has an empty manifest. */
  url(options: { readonly schema?: string; readonly leaseS?: number; readonly user?: string } = {}): string {
    const { schema = `test_${++this.#schemas}`, leaseS = 60, user = USER } = options;
    return `postgres://${user}@127.0.0.1:${this.port}/postgres?schema=${schema}&lease_s=${leaseS}`;
  }

  /** Runs SQL as the owner of the database, or as another role. */
  async query(sql: string, user = USER): Promise<readonly SqlRow[]> {
    const driver = await loadPgDriver({
      ...{ url: `postgres://${user}@127.0.0.1:${this.port}/postgres`, schema: "public", idleInTransactionMs: 0 },
    });
    const client = driver.client();
    await client.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  }

  /** Starts the server, also again with its data after `kill`. */
  async start(): Promise<void> {
    const settings = {
      ...{ port: String(this.port), listen_addresses: "127.0.0.1", unix_socket_directories: "", fsync: "off" },
      ...{ max_connections: "200", autovacuum: "off", log_min_messages: "fatal" },
      ...this.#settings,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(join(this.#commands, "postgres"), ["-D", join(this.#folder, "data"), ...flags], {
      ...{ ...this.#owner, cwd: this.#folder, stdio: "ignore" },
    });
    this.#child = child;
    while (!(await this.#answers())) {
      if (child.exitCode !== null) throw new Error(`postgres ended with ${child.exitCode}`);
      await systemTime.sleep(20);
    }
  }

  /** Ends the server at once, or with SIGINT in good order; transactions that it has committed are kept. */
  async kill(signal: "SIGQUIT" | "SIGINT" = "SIGQUIT"): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #owner(): { readonly uid?: number; readonly gid?: number } {
    return process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  }

  /** Whether the server accepts connections: while it starts, it answers with an error. */
  async #answers(): Promise<boolean> {
    const socket = new Socket();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    socket.once("data", data => resolve(data[0] === "R".charCodeAt(0))).once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
    socket.connect(this.port, "127.0.0.1", () => socket.write(startupMessage()));
    const isUp = await promise;
    socket.destroy();
    return isUp;
  }
}

/** Version 3.0 of the protocol, with the user. The server answers `R` (authentication) when it is ready. */
function startupMessage(): Buffer {
  const body = Buffer.from(`\0\u0003\0\0user\0${USER}\0database\0postgres\0\0`, "latin1");
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
}
