/** A Redis server with a replica and three sentinels, for one test. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemTime } from "../../src/time/system-time.ts";
import { RedisServer } from "./redis-server.ts";

/** The name under which the sentinels monitor the server. */
const NAME = "limits";

export interface SentinelSetOptions {
  /** Settings of the two servers. */
  readonly serverArgs?: readonly string[];
  /** Settings of the sentinels, one for each line of their configuration. */
  readonly sentinelSettings?: readonly string[];
}

export class RedisSentinelSet implements AsyncDisposable {
  /** Both data servers; the first one is the primary at the start. */
  readonly servers: readonly [RedisServer, RedisServer];
  readonly sentinels: readonly RedisServer[];
  readonly #folder: string;

  static async start({ serverArgs = [], sentinelSettings = [] }: SentinelSetOptions = {}): Promise<RedisSentinelSet> {
    const folder = await mkdtemp(join(tmpdir(), "docstokg-sentinel-"));
    const args = [...serverArgs, "--dir", folder, "--repl-diskless-sync-delay", "0"];
    const first = await RedisServer.start(...args);
    const second = await RedisServer.start(...args, "--replicaof", `127.0.0.1 ${first.port}`);
    const settings = [
      `sentinel monitor ${NAME} 127.0.0.1 ${first.port} 2`,
      `sentinel down-after-milliseconds ${NAME} 500`,
      `sentinel failover-timeout ${NAME} 3000`,
      ...sentinelSettings,
    ];
    const sentinels = await Promise.all([1, 2, 3].map(() => RedisServer.startSentinel(folder, settings)));
    const set = new RedisSentinelSet(folder, [first, second], sentinels);
    await set.isComplete();
    return set;
  }

  private constructor(folder: string, servers: readonly [RedisServer, RedisServer], sentinels: readonly RedisServer[]) {
    this.#folder = folder;
    this.servers = servers;
    this.sentinels = sentinels;
  }

  get url(): string {
    return `redis+sentinel://${this.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${NAME}`;
  }

  /** The server that the sentinels name now. */
  get primary(): RedisServer {
    const [sentinel] = this.sentinels;
    const port = sentinel?.cli("sentinel", "get-master-addr-by-name", NAME).split("\n")[1];
    return this.servers.find(server => String(server.port) === port) ?? this.servers[0];
  }

  /**
   * Resolves when every sentinel knows the two others and the replica, and the replica has the data, so that they can
   * agree on a failover that loses nothing.
   */
  async isComplete(): Promise<void> {
    const knows = (sentinel: RedisServer) => {
      const text = sentinel.cli("sentinel", "master", NAME).split("\n");
      const field = (name: string) => text[text.indexOf(name) + 1];
      return field("num-other-sentinels") === "2" && field("num-slaves") === "1" && field("flags") === "master";
    };
    const hasData = ({ primary, servers }: RedisSentinelSet) =>
      servers.every(
        server => server === primary || server.cli("info", "replication").includes("master_link_status:up"),
      );
    const isComplete = () => {
      try {
        return this.sentinels.every(knows) && hasData(this);
      } catch {
        // The sentinels close the connections of a server that they make a replica.
        return false;
      }
    };
    while (!isComplete()) await systemTime.sleep(50);
  }

  /** Starts a server again that was killed as primary. Without this the sentinels take ten seconds to make it a replica. */
  async rejoin(server: RedisServer): Promise<void> {
    await server.start();
    server.cli("replicaof", "127.0.0.1", String(this.primary.port));
    await this.isComplete();
  }

  /** Resolves when the sentinels have promoted the other server. */
  async failedOver(from: RedisServer): Promise<void> {
    while (this.primary === from) await systemTime.sleep(50);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map(server => server.stop()));
    await rm(this.#folder, { recursive: true, force: true });
  }
}
