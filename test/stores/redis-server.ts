/** Starts a Redis server for one test, on a free port and without files on disk. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, Socket } from "node:net";
import { join } from "node:path";
import { systemTime } from "../../src/time/system-time.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { pathOf, REDIS, whyMissing } from "../tools.ts";

/** The reason to skip tests that need a Redis server; false if they can run. */
export function whyNoRedis(): string | false {
  return whyMissing(REDIS);
}

export class RedisServer {
  readonly port: number;
  readonly #command: string;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;

  static async start(...args: readonly string[]): Promise<RedisServer> {
    const port = await RedisServer.freePort();
    const plain = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    // A replica writes what it gets to dump.rdb, and the next server in the same folder would start with these data.
    const apart = ["--dir", temporaryFolder("redis"), "--repl-diskless-load", "swapdb"];
    const server = new RedisServer(port, [...plain, ...apart, ...args]);
    await server.start();
    return server;
  }

  /** A sentinel. It writes what it learns into its configuration file. */
  static async startSentinel(folder: string, settings: readonly string[]): Promise<RedisServer> {
    const port = await RedisServer.freePort();
    const file = join(folder, `sentinel-${port}.conf`);
    await writeFile(file, [`port ${port}`, "bind 127.0.0.1", `dir ${folder}`, ...settings, ""].join("\n"));
    const server = new RedisServer(port, [file, "--sentinel"]);
    await server.start();
    return server;
  }

  /**
   * A free port below the range that the system assigns automatically, so that no other test gets it while the server
   * starts or is stopped. A cluster node also uses this port plus 10,000, which is below that range too.
   */
  static async freePort(): Promise<number> {
    for (;;) {
      const port = randomInt(12_000, 22_000);
      if ((await isFree(port)) && (await isFree(port + 10_000))) return port;
    }
  }

  private constructor(port: number, args: readonly string[]) {
    const command = pathOf(REDIS);
    if (command === undefined) throw new Error(String(whyNoRedis()));
    this.port = port;
    this.#command = command;
    this.#args = args;
  }

  get url(): `redis://${string}` {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts the server again on the same port, without its data. */
  async start(): Promise<void> {
    const child = spawn(this.#command, this.#args, { stdio: "ignore" });
    this.#child = child;
    while (!(await this.#answers())) {
      if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode}`);
      await systemTime.sleep(10);
    }
  }

  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  /** Runs one command with redis-cli. */
  cli(...command: readonly string[]): string {
    return execFileSync("redis-cli", ["-p", String(this.port), ...command], { encoding: "utf8" }).trim();
  }

  async #answers(): Promise<boolean> {
    const socket = new Socket();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    socket.once("data", () => resolve(true)).once("error", () => resolve(false));
    socket.connect(this.port, "127.0.0.1", () => socket.write("PING\r\n"));
    const isUp = await promise;
    socket.destroy();
    return isUp;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
